module github.com/ndbridge/ndbridge/native/linux_arm64

go 1.26.0
