adapter "nunpy" {
  copy = "nevr"
}

adapter "fortran" {}

adapter {}

adapter "" {}

program "camera" {
  script = "camera.py"
  plugin = "numpy"
}
