program "survey" {
  python = env("GRIDLIB_PYTHON", "python3")
  script = "survey.py"
  plugin = env("GRIDLIB_PLUGIN", "./build/gridlib.so")

  shared_heap_libraries = ["*"]
}

adapter "gridlib" {
  quirk "gridlib.bool-before-2" { enabled = false }
}
