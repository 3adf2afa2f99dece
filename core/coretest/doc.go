// Package coretest helps to test programs and producers that use package core. It has views over ordinary Go
// memory, a producer in memory, a search for forgotten views, and the contract of [contract.Producer] as a test
// suite.
//
// One line finds the views that a package forgets to close:
//
//	func TestMain(m *testing.M) { coretest.Main(m) }
//
// A producer proves that it keeps the contract by offering the arrays of [Arrays] and running
// [Conform]:
//
//	func TestConform(t *testing.T) {
//		coretest.Conform(t, func(t *testing.T) contract.Producer { return open(t) })
//	}
package coretest
