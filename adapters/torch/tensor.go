package torch

import (
	"errors"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// tensor holds the facts about one tensor on which quirks depend.
type tensor struct {
	class        string    // of the object: "torch.nn.parameter.Parameter"
	layout       string    // "strided", "sparse_coo", "jagged"
	dtype        string    // "float32"
	meta         bool      // on the device "meta"
	nested       bool      // a list of tensors of different shapes
	requiresGrad bool      // autograd watches it
	conj, neg    bool      // its elements stand for their conjugates, for their negatives
	noData       bool      // has no memory of its own, though it may have elements
	owned        bool      // the memory is PyTorch's own, and nobody else's
	uint8        py.Object // torch.uint8, as which any memory can be seen
}

// looker asks a tensor for facts.
type looker struct {
	g     *py.GIL
	class py.Object // torch.Tensor
	o     py.Object
	plain bool // o's class changes nothing
}

// look finds the facts, as torch.Tensor has them: what a subclass says of itself may be wrong, and may
// run its own code.
func look(g *py.GIL, env *program.Env, class, o py.Object) (*tensor, error) {
	l := looker{g: g, class: class, o: o}
	t := &tensor{class: g.TypeName(o)}
	l.plain = isPlain(t.class)
	if l.plain {
		return t, l.look(env, t)
	}
	leave, err := withoutOverrides(g, env)
	if err != nil {
		return nil, err
	}
	defer leave()
	return t, l.look(env, t)
}

// isPlain reports whether a class changes nothing of what a tensor is.
func isPlain(class string) bool {
	return class == "torch.Tensor" || class == "torch.nn.parameter.Parameter"
}

// withoutOverrides makes subclasses' __torch_function__ have no part in what this thread does until
// leave is called.
func withoutOverrides(g *py.GIL, env *program.Env) (leave func(), err error) {
	internals, err := g.Attr(env.Module, "_C")
	if err != nil {
		return nil, err
	}
	guard, err := g.CallMethod(internals, "DisableTorchFunction", nil, nil)
	if err != nil {
		return nil, err
	}
	if _, err := g.CallMethod(guard, "__enter__", nil, nil); err != nil {
		return nil, err
	}
	none := g.None()
	return func() { _, _ = g.CallMethod(guard, "__exit__", []py.Object{none, none, none}, nil) }, nil
}

func (l *looker) look(env *program.Env, t *tensor) (err error) {
	if t.uint8, err = l.g.Attr(env.Module, "uint8"); err != nil {
		return err
	}
	if t.layout, err = l.word("layout"); err != nil {
		return err
	}
	if t.dtype, err = l.word("dtype"); err != nil {
		return err
	}
	for _, fact := range []struct {
		to   *bool
		ask  func(name string) (bool, error)
		name string
	}{
		{&t.meta, l.flag, "is_meta"},
		{&t.nested, l.flag, "is_nested"},
		{&t.requiresGrad, l.flag, "requires_grad"},
		{&t.conj, l.call, "is_conj"},
		{&t.neg, l.call, "is_neg"},
	} {
		if *fact.to, err = fact.ask(fact.name); err != nil {
			return err
		}
	}
	if t.layout != "strided" || t.nested {
		return nil // where its data is cannot be asked
	}
	if t.noData, err = l.hasNoData(t); t.noData || err != nil {
		return err
	}
	t.owned, err = l.isOwned()
	return err
}

// storageOf gives a tensor's storage, as PyTorch 2.0 and newer have it. Subclasses' overrides have no part in it.
func storageOf(g *py.GIL, class, o py.Object) (storage py.Object, ok bool, err error) {
	f, ok, err := g.AttrOK(class, "untyped_storage")
	if !ok || err != nil {
		return 0, false, err
	}
	storage, err = g.CallC(f, o, 0)
	return storage, err == nil, err
}

// isOwned asks the storage whether it can be resized, as those can that PyTorch has allocated itself.
// Old versions do not say, 2.1 among them.
func (l *looker) isOwned() (bool, error) {
	storage, ok, err := storageOf(l.g, l.class, l.o)
	if !ok || err != nil {
		return false, err
	}
	f, ok, err := l.g.AttrOK(storage, "resizable")
	if !ok || err != nil {
		return false, err
	}
	owned, err := l.g.Call(f, nil, nil)
	if err != nil {
		return false, err
	}
	return l.g.Bool(owned)
}

// hasNoData tells tensors whose elements are in no memory: fake and wrapped ones, those of a transform
// that runs, those whose storage was given up, and those of which not even the shape is known yet.
func (l *looker) hasNoData(t *tensor) (bool, error) {
	if t.meta || l.isFake() || strings.HasPrefix(t.class, "torch.nn.parameter.Uninitialized") {
		return true, nil
	}
	count, err := l.number("numel")
	if err != nil || count == 0 {
		return false, err
	}
	pointer, err := l.number("data_ptr")
	if errors.Is(err, core.ErrPython) {
		return true, nil
	}
	return pointer == 0, err
}

// isFake is asked first because torch warns when a fake tensor is asked for its pointer.
func (l *looker) isFake() bool {
	if l.plain {
		return false
	}
	module, ok := l.g.Loaded("torch._subclasses.fake_tensor")
	if !ok {
		return false
	}
	class, ok, err := l.g.AttrOK(module, "FakeTensor")
	return ok && err == nil && l.g.IsInstance(l.o, class)
}

func (l *looker) attr(name string) (py.Object, error) {
	if l.plain {
		return l.g.Attr(l.o, name)
	}
	v, ok, err := l.g.AttrOf(l.class, l.o, name)
	if err == nil && !ok {
		return l.g.Attr(l.class, name) // for the error
	}
	return v, err
}

// word gives the text of an attribute without "torch." in front of it.
func (l *looker) word(name string) (string, error) {
	v, err := l.attr(name)
	if err != nil {
		return "", err
	}
	text, err := l.g.Str(v)
	return strings.TrimPrefix(strings.TrimPrefix(text, "torch."), "_"), err // "torch._mkldnn"
}

func (l *looker) flag(name string) (bool, error) {
	v, err := l.attr(name)
	if err != nil {
		return false, err
	}
	return l.g.Bool(v)
}

func (l *looker) method(name string) (py.Object, error) {
	f, err := l.attr(name)
	if err != nil {
		return 0, err
	}
	return l.g.Call(f, nil, nil)
}

func (l *looker) call(name string) (bool, error) {
	v, err := l.method(name)
	if err != nil {
		return false, err
	}
	return l.g.Bool(v)
}

func (l *looker) number(name string) (uint64, error) {
	v, err := l.method(name)
	if err != nil {
		return 0, err
	}
	return l.g.Uint64(v)
}
