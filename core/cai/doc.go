// Package cai reads what frameworks export without C structs, and writes its words for element types: the dictionaries of the CUDA Array Interface
// (__cuda_array_interface__, versions 0 to 3) and of NumPy's array interface (__array_interface__), and the element
// types of both and of Python's buffer protocol.
//
// Its functions are pure. The caller takes the fields out of the dictionary or the Py_buffer and puts them into the
// plain structs of this package. The functions check them and return a [core.LayoutSpec].
//
// Element types that core does not have become opaque elements of the same size. Their tag is NumPy's name for the type:
// ">f8" for another byte order than the machine's, "datetime64[ns]", "<U3", "[('a', '<i4'), ('b', '<f8')]". Types that
// mean nothing outside of their process, above all Python objects, are errors.
package cai
