package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// watchFrames counts the pictures that are shown, and those whose points differ: each is of one colour.
const watchFrames = `
window.shown = 0; window.torn = 0;
const canvas = document.querySelector('.canvas');
new MutationObserver(() => {
	window.shown++;
	const points = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
	for (let i = 4; i < points.length; i += 4) if (points[i] !== points[0]) { window.torn++; break; }
}).observe(canvas, { attributes: true, attributeFilter: ['data-frames'] });`

// TestVideo shows at least 30 of 60 pictures a second, and none that is torn: of new arrays, and of four buffers in turn. A machine that is
// busy may show fewer, but not each time.
func TestVideo(t *testing.T) {
	for _, buffers := range []string{"0", "4"} {
		t.Run(buffers+" buffers", func(t *testing.T) {
			p := open(t, inspectWith(t, []string{"--budget", "100"}, "video.py", buffers), 900, 700)
			p.show("video")
			p.until(fmt.Sprintf(drawn, `.canvas`))
			p.do(chromedp.Evaluate[chromedp.Void](watchFrames))
			best := 0.0
			for range 15 {
				rate := eval[float64](p, `new Promise((done) => { const n = window.shown, at = performance.now(); setTimeout(() => done(1000 * (window.shown - n) / (performance.now() - at)), 1500); })`)
				if best = max(best, rate); best >= 30 {
					break
				}
			}
			t.Logf("%.0f pictures a second", best)
			if best < 30 {
				t.Errorf("%.0f pictures a second at most, want 30", best)
			}
			if torn := eval[int](p, "window.torn"); torn > 0 {
				t.Errorf("%d torn pictures", torn)
			}
			p.until("[...document.querySelectorAll('.badge')].some((b) => b.textContent === 'whole')")
		})
	}
}
