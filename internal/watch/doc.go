// Package watch looks at arrays of programs again and again, under a budget: statistics with a history of each array, and
// alarms.
package watch
