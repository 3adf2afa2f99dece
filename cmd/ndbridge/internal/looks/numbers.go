package looks

import (
	"context"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/watch"
)

// Numbers reads Python's own numbers of these names, as far as there are such, in one request. The error wraps core.ErrUnsupported if the program
// cannot be searched.
func Numbers(ctx context.Context, p Program, names []string) (map[string]watch.Number, error) {
	if len(names) == 0 {
		return nil, nil //nolint:nilnil // a map without items
	}
	found, err := Search(ctx, p, contract.Search{Names: names})
	if err != nil {
		return nil, err
	}
	all := make(map[string]watch.Number, len(found.Numbers))
	for _, n := range found.Numbers {
		all[n.Name] = watch.Number{Type: n.Type(), Value: n.Value}
	}
	return all, nil
}
