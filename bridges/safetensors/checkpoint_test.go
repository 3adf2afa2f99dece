package safetensors

import (
	"context"
	"errors"
	"os"

	"github.com/ndbridge/ndbridge/hostplugin"
)

// checkpoint waits for the next version of a group and writes it to a file.
func checkpoint(ctx context.Context, set *hostplugin.Group, name string) (err error) {
	if err := set.Next(ctx); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return Write(ctx, f, set.Views(), nil)
}
