package browser

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestBecomes shows of a name what it means now: nothing that was shown of an array before stays beside another one, and what it says is a difference
// is one.
func TestBecomes(t *testing.T) {
	orders := filepath.Join(t.TempDir(), "orders")
	p := open(t, inspectWith(t, nil, "ordered.py", orders), 1280, 860)
	order := func(line string) {
		t.Helper()
		f, err := os.OpenFile(orders, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, line)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	title, badge := "document.querySelector('[aria-label=Picture] h2').textContent", "document.querySelector('.badge').textContent"
	drawnHistogram := fmt.Sprintf(drawn, `[aria-label="Histogram"] canvas`)
	links := "[...document.querySelectorAll('.exports > :not([hidden])')].map((n) => n.textContent).join(' ')"
	p.show("x")
	p.until(figure("max") + " === '9,999' && " + drawnHistogram)
	blank := "[...document.querySelectorAll('[aria-label=Histogram] canvas')].every((c) => c.dataset.full !== c.toDataURL())"
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelectorAll('[aria-label=Histogram] canvas').forEach((c) => { c.dataset.full = c.toDataURL(); })"))
	order("x = np.full((100, 100), np.nan)")
	p.until(figure("nan") + " === '10,000' && " + blank)
	order("x = np.arange(200000.0)")
	p.until(figure("max") + " === '199,999' && document.querySelector('.controls').textContent.includes('exact')")
	p.keys("p")
	p.until("[...document.querySelectorAll('.toggle')].some((b) => b.textContent === 'difference' && !b.disabled)")
	order("x += 1")
	p.keys("d")
	p.until(title + " === 'Difference to what was pinned' && " + figure("max") + " === '1'")
	order("x = x[:100000]")
	p.until(figure("max") + " === '100,000' && " + title + " === 'Picture: what was pinned has another shape'")
	order("x = np.broadcast_to(np.arange(2.0), (1 << 27, 2))")
	p.until("document.querySelector('.facts-row').textContent.includes('2.0 GiB')")
	p.keys("p") // drops what was pinned
	p.until("[...document.querySelectorAll('.toggle')].some((b) => b.textContent === 'difference' && b.disabled)")
	p.keys("p")
	p.until("document.querySelector('.error').textContent.includes('no more than 1.0 GiB are kept') && [...document.querySelectorAll('.toggle')].some((b) => b.textContent === 'pin' && b.ariaPressed === 'false')")
	order("x = np.array(['a', 'bc'])")
	p.until("document.querySelector('.error').textContent.includes('not one number') && " + links + " === '.npy' && document.querySelector('[data-figure=max]').closest('[hidden]')")
	order("del x")
	p.until(badge + " === 'stale' && document.querySelector('.error').textContent.includes('not found')")
	order("x = np.arange(10.0)")
	p.until(figure("max") + " === '9' && " + links + ".includes('.csv') && " + badge + " === 'copy'")
	order("del x")
	p.until(badge + " === 'stale' && document.querySelector('.error').textContent.includes('not found')")
	order("x = 5")
	p.until(figure("value") + " === '5' && " + badge + " === 'int'")
	order("x = np.arange(8.0)")
	p.until(figure("max") + " === '7' && " + badge + " === 'copy'")
	order("x = np.full((20, 30, 3), 9, np.uint8)")
	p.until("document.querySelector('.canvas').getAttribute('aria-label') === 'Image of x: rows 0 to 20, columns 0 to 30, from 0 to 255'")
	order("x = np.arange(96.0).reshape(8, 12)")
	p.until("document.querySelector('.canvas').getAttribute('aria-label') === 'Heat map of x: rows 0 to 8, columns 0 to 12, from 0 to 95'")
}
