program "camera" {
  script = "camera.py
}

program "other" {
  script: "b.py"
