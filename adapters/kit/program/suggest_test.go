package program

import "testing"

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"frame", "frames", "weights", "x", "y", "numpy", "größe", "numpy.stream-none-only"}
	for name, want := range map[string]string{
		"fram": "frame", "framess": "frames", "fraems": "frames", "frmae": "frame", "wieghts": "weights", "nump": "numpy",
		"z": "", "": "", "completely different": "", "frame": "frames", "grösse": "größe",
		"numpy.stream-non-only": "numpy.stream-none-only",
	} {
		if got := nearest(name, words); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
	if got := meant("fram", words); got != `did you mean "frame"?` {
		t.Errorf("%s", got)
	}
	if got := meant("qqqqqq", words); got != "" {
		t.Errorf("%s", got)
	}
}
