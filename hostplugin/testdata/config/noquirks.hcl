adapter "torch" {
  quirk "torch.require-grad" { enabled = false }
  quirk "torch.nothing-of-that-name-at-all" { enabled = false }
  quirk "torch.requires-grad" { effect = "refused" }
  quirk "torch.layouts" { effect = "stage" }
  quirk "torch.conj-bit" {
    enabled = false
    effect  = "refuse"
  }
  quirk "torch.no-data" {
    enabled = "no"
    effect  = true
  }
}

adapter "generic" {
  quirk "generic.anything" { enabled = false }
}

program "trainer" {
  script = "train.py"
}
