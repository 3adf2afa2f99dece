// Package py is the Python C API of the interpreter that this library was loaded into, and the rules
// for using it from Go: who holds the GIL, who owns a reference, and what happens when the
// interpreter ends.
//
// An [Interp] is the interpreter. [Interp.Do] runs a function with the GIL held and hands it a [GIL],
// through which everything else is done:
//
//	err := interp.Do(ctx, func(g *py.GIL) error {
//		main, err := g.Main()
//		if err != nil {
//			return err
//		}
//		frame, err := g.Attr(main, "frame") // belongs to the scope: no reference to give back
//		...
//	})
//
// References. Every [Object] that a method returns belongs to the scope of its GIL and is given back
// when the function ends, however it ends. So there is no code that can forget to, and none that can
// do it twice. What must live longer is kept with [GIL.Keep], and given back with [GIL.Drop]. A loop
// over many objects uses [GIL.Nested] to give them back early.
//
// Errors. A Python exception becomes a [*core.PythonError]; Python's own error indicator is clear
// after every call.
//
// One library serves every CPython from 3.8 on: the functions are found by name in the process, and
// only those that have not changed since are used.
package py
