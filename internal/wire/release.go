package wire

// Release is the version of this module's commands and plugins.
const Release = "0.1.0"
