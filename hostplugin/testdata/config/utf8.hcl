program "camera" {
  script = "camÿþra.py"
}
