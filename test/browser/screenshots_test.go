package browser

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "write the pictures of the documentation into this folder")

// TestScreenshots takes the pictures of the documentation. It keeps them only if it is asked to.
func TestScreenshots(t *testing.T) {
	address := inspectWith(t, []string{"--budget", "50"}, "training.py")
	for _, c := range []struct {
		file, theme, name string
		width, height     int64
	}{
		{"inspect.png", "light", "field", 1280, 920},
		{"inspect-dark.png", "dark", "train().weight", 1280, 800},
		{"inspect-phone.png", "light", "photo", 390, 844},
	} {
		p := open(t, address, c.width, c.height)
		p.do(chromedp.Evaluate[chromedp.Void]("localStorage.setItem('theme', '"+c.theme+"')"), chromedp.Reload())
		p.show(c.name)
		p.until("document.querySelector('.canvas').dataset.frames > 5 && document.querySelector('[aria-label=History]:not([hidden]) canvas')")
		p.until("document.querySelector('#budget').textContent && !document.querySelector('#tree [aria-selected=true] .mark').hidden")
		picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err != nil || len(picture) < 10_000 {
			t.Fatalf("%s: %d bytes, %v", c.file, len(picture), err)
		}
		if *screenshots == "" {
			continue
		}
		if err := os.MkdirAll(*screenshots, 0o755); err != nil { //nolint:gosec // for everybody to read
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*screenshots, c.file), picture, 0o644); err != nil { //nolint:gosec // as above
			t.Fatal(err)
		}
	}
}
