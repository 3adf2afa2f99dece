package core

// Route says how an array's memory got here: "shared-heap", "mapped-file", "staged". Package contract
// lists the routes.
type Route string

// Reason says why memory was copied, or could not be shared: "heap-off", "converted". It is "" for memory
// that is shared. Package contract lists the reasons.
type Reason string

// QuirkID names one deviation of one framework from what the export protocols say:
// "numpy.stream-none-only".
type QuirkID string
