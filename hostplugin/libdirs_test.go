package hostplugin_test

import (
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
)

func TestLibDirs(t *testing.T) {
	t.Setenv("NDBRIDGE_LIB", "/b/")
	host := newHostWith(t, hostplugin.Config{LibDirs: []string{"/a", "", "/b", "/a/."}})
	dirs := host.LibDirs()
	if len(dirs) != 4 || !slices.Equal(dirs[:2], []string{"/a", "/b"}) {
		t.Errorf("LibDirs = %q", dirs)
	}
}
