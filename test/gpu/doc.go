// Package gpu tests what needs a GPU, on the real frameworks: that arrays of every kind of memory cross,
// in order, in both directions; what that costs; that nothing is left behind; and that what is wrong is
// said. With the tag "cuda" its tests run on a GPU with all frameworks that are there (make test-gpu),
// or on the simulated driver with those that run on it (make test).
//
// They write what they find into the file that NDBRIDGE_TEST_REPORT names, if it names one.
package gpu
