package browser

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNoNumbers says once of arrays without figures why they have none, and shows nothing else.
func TestNoNumbers(t *testing.T) {
	orders := filepath.Join(t.TempDir(), "orders")
	lines := "dates = np.zeros(3, 'M8[D]')\ntable = np.zeros(3, 'i4,f8')\ntext = np.array(['a', 'bc'])\nlong = np.zeros(3, np.longdouble)\n"
	if err := os.WriteFile(orders, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, inspectWith(t, nil, "ordered.py", orders), 1280, 860)
	visible := "[...document.querySelectorAll('.array .error, .array .card')].filter((n) => n.offsetParent)"
	for _, name := range []string{"dates", "table", "text", "long"} {
		p.show(name)
		p.until("document.querySelector('h1').textContent === '" + name + "' && " + visible + ".length === 1 && " + visible + "[0].textContent.includes('wrong dtype')")
	}
}
