package hostplugin

import (
	"context"
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Names gives the names that a pattern means and that lead to arrays now, sorted: a * stands for any text of a variable, an attribute or
// a quoted key (`model.*.weight`, `state["*"]`, `main().*`), [*] for any item, and ** for any way to go on (`model.**`). No code of the
// program's runs. The error wraps core.ErrConfig for what is no pattern, and core.ErrUnsupported if there are too many names.
func (s *Session) Names(ctx context.Context, pattern string) ([]string, error) {
	const op = "names"
	if err := s.ready(ctx, op, pattern); err != nil {
		return nil, err
	}
	found, err := s.conn.Client.Search(ctx, contract.Search{Pattern: pattern})
	if err != nil {
		return nil, s.wrap(op, pattern, err)
	}
	if found.More > 0 || found.Partial {
		return nil, s.wrap(op, pattern, &core.Error{
			Kind: core.ErrUnsupported, Err: errors.New("the pattern means more names than are searched for"), Remedy: "say more of the names",
		})
	}
	var all []string
	for _, e := range found.Entries {
		if errors.Is(e.Err, core.ErrUnsupported) { // what would be an array in another table
			continue
		}
		all = append(append(all, e.Name), e.Also...)
	}
	slices.Sort(all)
	return all, nil
}
