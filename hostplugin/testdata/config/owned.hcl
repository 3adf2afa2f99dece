# An adapter that no shipped plugin holds is not a mistake where a plugin of the user's own runs.
adapter "fortran" {}

program "camera" {
  script = "camera.py"
  plugin = "./lib/mine.so"
}
