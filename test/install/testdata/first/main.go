package main

import (
	"context"
	"fmt"
	"log"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

func main() {
	ctx := context.Background()
	squares, err := hostplugin.Run(ctx, hostplugin.Program{Script: "squares.py"})
	if err != nil {
		log.Fatal(err)
	}
	defer squares.Close()
	view, err := squares.View(ctx, "squares")
	if err != nil {
		log.Fatal(err)
	}
	values, err := core.Slice[int64](view) // no copy: Python's own memory
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(values[0], values[1000], view.Route())
}
