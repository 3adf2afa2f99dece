// Package cai reads what frameworks export without C structs: the dictionaries of the CUDA Array
// Interface (__cuda_array_interface__, versions 0 to 3) and of NumPy's array interface
// (__array_interface__), and the element types of both and of Python's buffer protocol.
//
// Its functions are pure. Whoever talks to Python pulls the fields out of the dictionary or the
// Py_buffer into the plain structs of this package; the functions check them and give a
// core.LayoutSpec.
//
// Element types that core cannot say become opaque elements of the same size with a tag, in the words
// with which NumPy prints the type: ">f8" for another byte order than the machine's,
// "datetime64[ns]", "<U3", "[('a', '<i4'), ('b', '<f8')]". Types that mean nothing outside of their
// process, above all Python objects, are refused.
package cai
