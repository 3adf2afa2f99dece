// Package costs measures, as tests, what this module adds to the driver's own calls: at ordering a
// hand-over, at opening memory for the first time and again. It has no code of its own. The bounds hold
// on a GPU; on the simulated driver the tests only see that all of it works.
package costs
