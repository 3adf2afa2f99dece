// With a file of assembly in the package, Go takes a function without a body for one of elsewhere: pauseCPU.
