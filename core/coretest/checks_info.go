//go:build linux

package coretest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

func checkInfo(ctx context.Context, p contract.Producer) error {
	info, err := p.Info(ctx)
	switch {
	case err != nil:
		return err
	case info.PID <= 0:
		return fmt.Errorf("process id %d", info.PID)
	case info.Plugin == "":
		return errors.New("the plugin has no name")
	case info.Leases < 0:
		return fmt.Errorf("%d leases", info.Leases)
	case !slices.IsSortedFunc(info.Frameworks, func(a, b contract.Framework) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}):
		return fmt.Errorf("frameworks are not sorted by name: %v", info.Frameworks)
	}
	return nil
}

func checkInfoContext(ctx context.Context, p contract.Producer) error {
	return ended(ctx, func(ctx context.Context) error {
		_, err := p.Info(ctx)
		return err
	})
}

func checkArrays(ctx context.Context, p contract.Producer) error {
	var names []string
	layouts := map[string]core.Layout{}
	for e, err := range p.Arrays(ctx) {
		switch {
		case err != nil:
			return err
		case e.Name == "":
			return errors.New("an entry has no name")
		case len(names) > 0 && e.Name <= names[len(names)-1]:
			return fmt.Errorf("%q comes after %q", e.Name, names[len(names)-1])
		}
		names = append(names, e.Name)
		if e.Err == nil {
			layouts[e.Name] = e.Layout
		}
	}
	for _, a := range Arrays() {
		l, ok := layouts[a.Name]
		if !ok {
			return fmt.Errorf("%s is not listed, or as one that cannot be leased; listed are %q", a.Name, names)
		}
		if err := describes(l, a); err != nil {
			return err
		}
	}
	return nil
}

// checkArraysBreak leaves the loop early: the language panics if the producer goes on.
func checkArraysBreak(ctx context.Context, p contract.Producer) error {
	for range 3 {
		for _, err := range p.Arrays(ctx) {
			if err != nil {
				return err
			}
			break
		}
	}
	return checkArrays(ctx, p)
}

func checkArraysContext(ctx context.Context, p contract.Producer) error {
	return ended(ctx, func(ctx context.Context) (last error) {
		for _, err := range p.Arrays(ctx) {
			if last != nil {
				return errors.New("the listing goes on after an error")
			}
			last = err
		}
		return last
	})
}
