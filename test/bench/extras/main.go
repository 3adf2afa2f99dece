// Command extras is what the benchmark needs of modules that ndbridge does not: the client of Arrow Flight,
// and the picture of a report.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "extras:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 3 && args[0] == "flight":
		return serve(ctx, args[1], args[2], os.Stdin, os.Stdout)
	case len(args) == 3 && args[0] == "plot":
		return draw(args[1], args[2], os.Stdout)
	}
	return errors.New("usage: extras flight PYTHON SOCKET, or extras plot RESULT.json PICTURE.png")
}
