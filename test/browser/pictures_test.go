package browser

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// ofPictures is what the tests ask of the picture: point(x, y, w, h) is the colour in the middle of one of w x h points, and hover(…) what the page
// says of it. differs(w, h, want) names the first point whose colour is not what want(x, y) gives.
const ofPictures = `
window.canvas = () => document.querySelector('.canvas');
window.point = (x, y, w, h) => { const c = canvas(); return [...c.getContext('2d').getImageData(Math.floor((x + 0.5) * c.width / w), Math.floor((y + 0.5) * c.height / h), 1, 1).data]; };
window.hover = (x, y, w, h) => { const box = canvas().getBoundingClientRect();
	canvas().dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + (x + 0.5) * box.width / w, clientY: box.top + (y + 0.5) * box.height / h }));
	return document.querySelector('[aria-label=Picture] .readout').textContent; };
window.differs = (w, h, want) => { for (let y = 0; y < h; y++) for (let x = 0; x < w; x++) { const got = String(point(x, y, w, h)); if (got !== String(want(x, y))) return ` + "`${x}, ${y}: ${got}, want ${want(x, y)}`" + `; } return ''; };
window.pick = (label, value) => { const s = document.querySelector('select[aria-label=' + label + ']'); s.value = value; s.dispatchEvent(new Event('change')); };
window.press = (text) => [...document.querySelectorAll('.array button')].find((b) => b.textContent === text).click();`

func openPictures(t *testing.T) (p *page, order string) {
	t.Helper()
	order = filepath.Join(t.TempDir(), "order")
	p = open(t, inspectWith(t, []string{"--budget", "50"}, "pictures.py", order), 1280, 860)
	p.js(ofPictures)
	return p, order
}

// js runs statements.
func (p *page) js(statements string) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](statements + "; undefined"))
}

// waitFor waits until an expression has a value.
func (p *page) waitFor(expression, want string) {
	p.t.Helper()
	var got string
	for end := time.Now().Add(patience); ; p.do(chromedp.Sleep(20 * time.Millisecond)) {
		if got = eval[string](p, "String("+expression+")"); got == want {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s is %q, want %q", expression, got, want)
		}
	}
}

const label = "canvas().getAttribute('aria-label')"

// TestImageOrders compares each point of images and contact sheets with the array.
func TestImageOrders(t *testing.T) {
	p, _ := openPictures(t)
	const element = "(n, y, x) => [0, 1, 2].map((c) => (40 * n + 7 * y + 3 * x + 60 * c) % 256)"
	for _, tt := range []struct {
		name, as              string
		rows, columns, pixels int // of the sheet; of a tile are 12 x 10 points
		first                 int
		at                    [2]int // a point, x and y
		says                  string
	}{
		{"nhwc", "NHWC", 2, 3, 5, 0, [2]int{13, 17}, "picture 4: 5, 3   rgb 204 8 68"},
		{"nchw", "NCHW", 2, 3, 5, 0, [2]int{29, 0}, "picture 2: 0, 9   rgb 107 167 227"},
		{"chw", "CHW", 1, 1, 1, 2, [2]int{9, 11}, "11, 9   rgb 184 244 48"},
	} {
		p.show(tt.name)
		p.waitFor("document.querySelector('.array h1').textContent", tt.name)
		p.waitFor("document.querySelector('select[aria-label=as]').value", tt.as) // what it is likely to be
		p.waitFor(label, "Image of "+tt.name+": rows 0 to 12, columns 0 to 10, from 0 to 255")
		w, h := 10*tt.columns, 12*tt.rows
		p.waitFor(fmt.Sprintf(`differs(%d, %d, (x, y) => { const n = Math.floor(y / 12) * %d + Math.floor(x / 10), e = %s;
			return n < %d ? [...e(%d + n, y %% 12, x %% 10), 255] : [0, 0, 0, 0]; })`, w, h, tt.columns, element, tt.pixels, tt.first), "")
		p.waitFor(fmt.Sprintf("hover(%d, %d, %d, %d)", tt.at[0], tt.at[1], w, h), tt.says)
	}
	p.show("nhwc")
	p.until(label + "?.startsWith('Image of nhwc')")
	p.waitFor("hover(25, 20, 30, 24)", "") // there is no sixth picture
	p.show("tall")                         // every which point is drawn, and each says where it is
	p.waitFor(label, "Image of tall: rows 0 to 2400, columns 0 to 20, from 0 to 255")
	p.until(`(() => { const m = hover(1, 99, 2, 100).match(/^(\d+), (\d+)   rgb (\d+) (\d+) (\d+)$/); if (!m) return false;
		const [y, x, ...c] = m.slice(1).map(Number); return y > 2300 && x >= 10 && x < 20 && c.every((v, k) => v === (7 * Math.floor(y / 200) + 3 * Math.floor(x / 2) + 60 * k) % 256); })()`)
}

// TestContactSheet shows a batch of grey pictures.
func TestContactSheet(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	p.js(ofPictures)
	p.show("digits")
	p.waitFor(label, "Image of digits: rows 0 to 28, columns 0 to 28, from 0 to 255")
	p.waitFor(`differs(112, 112, (x, y) => { const n = 4 * Math.floor(y / 28) + Math.floor(x / 28), g = 255 * (Math.hypot(y % 28 - 14, x % 28 - 14) < n); return [g, g, g, 255]; })`, "")
	p.show("photo") // of which nearly all is not all
	p.until("document.querySelector('.health-text').textContent.includes('zero 0.3 % · positive 99.7 %')")
}

// TestDifference shows what has changed since an array was pinned, and nothing else: of an image, too, whose bytes have become less.
func TestDifference(t *testing.T) {
	for _, tt := range []struct{ name, before, min, max, mean, changed, same string }{
		{"steps", "0", "0", "3", "0.1875", "[75, 125]   3", "[10, 10]   0"},
		{"shot", "200", "−100", "0", "−50", "[75, 125]   −100", "[150, 10]   0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, order := openPictures(t)
			title := "document.querySelector('[aria-label=Picture] h2').textContent"
			p.show(tt.name)
			p.waitFor(figure("max"), tt.before)
			p.keys("p")
			p.until("[...document.querySelectorAll('.toggle')].some((b) => b.textContent === 'difference' && !b.disabled)")
			if err := os.WriteFile(order, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p.keys("d")
			p.waitFor(title, "Difference to what was pinned")
			for name, want := range map[string]string{"min": tt.min, "max": tt.max, "mean": tt.mean} {
				p.waitFor(figure(name), want)
			}
			p.until(label + "?.startsWith('Heat map')")
			p.waitFor("hover(125, 75, 200, 200)", tt.changed)
			var x, y int
			if _, err := fmt.Sscanf(tt.same, "[%d, %d]", &y, &x); err != nil {
				t.Fatal(err)
			}
			p.waitFor(fmt.Sprintf("hover(%d, %d, 200, 200)", x, y), tt.same)
			if got := eval[string](p, fmt.Sprintf("String(point(125, 75, 200, 200)) + ' ' + point(%d, %d, 200, 200)", x, y)); strings.HasPrefix(got, strings.Fields(got)[1]) {
				t.Errorf("what has changed and what has not have the colour %s", got)
			}
			p.waitFor("[...document.querySelectorAll('.scale span')].map((n) => n.textContent).join()", map[string]string{"steps": "−3,3", "shot": "−100,100"}[tt.name])
			p.keys("i") // an image shows the array itself
			p.until(label + "?.startsWith('Image')")
			p.waitFor(title, "Picture")
		})
	}
}

// TestAxes picks the axes of rows and columns, and moves along the others.
func TestAxes(t *testing.T) {
	p, _ := openPictures(t)
	p.show("cube")
	p.waitFor(label, "Heat map of cube: rows 0 to 6, columns 0 to 8, from 0 to 47")
	p.keys("]")
	p.waitFor(label, "Heat map of cube: rows 0 to 6, columns 0 to 8, from 48 to 95")
	p.waitFor("hover(7, 5, 8, 6)", "[1, 5, 7]   95")
	p.js("pick('rows', '0')")
	p.waitFor(label, "Heat map of cube: rows 0 to 4, columns 0 to 8, from 0 to 151")
	p.keys("]]]")
	p.waitFor("hover(5, 2, 8, 4)", "[2, 3, 5]   125")
	p.keys("[")
	p.waitFor("hover(5, 2, 8, 4)", "[2, 2, 5]   117")
	p.waitFor("document.querySelector('.slider output').textContent", "2")
	p.js("pick('columns', '0')") // they change places
	p.waitFor(label, "Heat map of cube: rows 0 to 8, columns 0 to 4, from 16 to 167")
	p.waitFor("['rows', 'columns'].map((l) => document.querySelector(`select[aria-label=${l}]`).value).join()", "2,0")
	p.waitFor("hover(2, 5, 4, 8)", "[2, 2, 5]   117")
	p.js("pick('as', 'NHW')")
	p.waitFor(label, "Image of cube: rows 0 to 6, columns 0 to 8, from 0 to 255")
}

// TestDigits shows numbers that a float32 has no digits or no room for: each in its place of the colours, and as what it is.
func TestDigits(t *testing.T) {
	p, _ := openPictures(t)
	for name, want := range map[string][3]string{ // elements 0, 1 and 1000
		"ids":  {"123,456,789", "123,456,790", "123,457,789"},
		"huge": {"−1.7e+308", "−1.6983e+308", "0"},
		"tiny": {"0", "4.9407e−324", "4.9407e−321"},
	} {
		p.show(name)
		p.until(label + "?.startsWith('Heat map of " + name + ":')")
		for i, at := range []string{"0, 0", "1, 0", "0, 20"} {
			if says := eval[string](p, "hover("+at+", 50, 40)"); !strings.HasSuffix(says, "]   "+want[i]) {
				t.Errorf("of %s the page says %q, want %s", name, says, want[i])
			}
		}
		const viridis = "68,1,84,255 33,144,141,255 253,231,37,255" // first, middle and last
		if got := eval[string](p, "[point(0, 0, 50, 40), point(0, 20, 50, 40), point(49, 39, 50, 40)].join(' ')"); got != viridis {
			t.Errorf("the colours of %s are %s, want %s", name, got, viridis)
		}
	}
	p.show("ids")
	p.waitFor(figure("mean"), "123,457,789") // and a half
	const room = "(() => { const c = document.createElement('canvas').getContext('2d'); c.font = '11px ' + getComputedStyle(document.documentElement).getPropertyValue('--sans'); return c.measureText('123,456,789').width; })()"
	p.until("document.querySelector('[aria-label=Line] .u-over')?.offsetLeft > " + room) // before the axis: the numbers are not cut off
}

// TestFixedColours keeps colours for numbers, whatever is shown.
func TestFixedColours(t *testing.T) {
	p, _ := openPictures(t)
	scale := "[...document.querySelectorAll('.scale span')].map((n) => n.textContent).join()"
	fix := func(low, high string) {
		p.js(fmt.Sprintf("[...document.querySelectorAll('.bound')].forEach((n, i) => { n.value = [%q, %q][i]; n.dispatchEvent(new Event('change')); })", low, high))
	}
	p.show("cube")
	p.waitFor(scale, "0,47")
	free := eval[string](p, "String(point(0, 0, 8, 6)) + ' ' + point(7, 5, 8, 6)") // the ends of the colours
	p.js("press('fix')")
	p.keys("]")
	p.waitFor("hover(0, 0, 8, 6)", "[1, 0, 0]   48")
	p.waitFor(scale, "0,47")
	p.waitFor("String(point(0, 0, 8, 6)) + ' ' + point(7, 5, 8, 6)", strings.Repeat(strings.Fields(free)[1]+" ", 2)[:2*len(strings.Fields(free)[1])+1]) // all is more
	fix("48", "95")
	p.waitFor(scale, "48,95")
	p.waitFor("String(point(0, 0, 8, 6)) + ' ' + point(7, 5, 8, 6)", free)
	p.js("press('fix')")
	p.keys("]")
	p.waitFor(scale, "96,143")
	fix("5", "5") // no range
	p.waitFor("[...document.querySelectorAll('.array button')].find((b) => b.textContent === 'fix').getAttribute('aria-pressed')", "false")
	p.waitFor(scale, "96,143")
}

// TestHistogramReadout says of a bin what lies there, wherever in the bin the pointer is.
func TestHistogramReadout(t *testing.T) {
	p, _ := openPictures(t)
	p.js(`window.bin = (share) => { const over = document.querySelector('[aria-label=Histogram] .u-over'); if (!over) return 'none'; const box = over.getBoundingClientRect();
		const at = { bubbles: true, clientX: box.left + share * box.width, clientY: box.top + 10 };
		over.dispatchEvent(new MouseEvent('mouseenter', at)); over.dispatchEvent(new MouseEvent('mousemove', at));
		return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(document.querySelector('[aria-label=Histogram] .readout').textContent)))); }`)
	const says = `bin(%s).then((text) => { const m = text.replaceAll(',', '').match(/^(\S+) … (\S+):  (\d+)$/); return m && m[1] <= %s && %[2]s < m[2] && %s; })`
	p.show("powers") // as many elements between two powers of two each, from 1 to 2^20
	p.waitFor(figure("max"), "786,432")
	p.js("press('log')")
	for _, share := range []string{"0.21", "0.23", "0.24", "0.71", "0.74", "0.99"} {
		p.until(fmt.Sprintf(says, share, "2 ** (20 * "+share+")", "m[3] === '1024'"))
	}
	p.show("cube")
	p.waitFor(figure("max"), "191")
	for _, share := range []string{"0.101", "0.333", "0.502", "0.77", "0.99"} {
		p.until(fmt.Sprintf(says, share, "191 * "+share, "m[3] < 192"))
	}
}

// TestSavePicture saves the picture as a file that has what the page shows.
func TestSavePicture(t *testing.T) {
	p, _ := openPictures(t)
	dir := t.TempDir()
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
			Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(ctx).BrowserContextID, DownloadPath: dir,
		})
		return err
	}))
	p.show("chw")
	p.waitFor(label, "Image of chw: rows 0 to 12, columns 0 to 10, from 0 to 255")
	p.js("press('this picture')")
	var text []byte
	for end := time.Now().Add(patience); len(text) == 0; p.do(chromedp.Sleep(50 * time.Millisecond)) {
		text, _ = os.ReadFile(filepath.Join(dir, "chw.png")) // until it is there
		if time.Now().After(end) {
			files, err := os.ReadDir(dir)
			t.Fatalf("no file: %v, %v", files, err)
		}
	}
	picture, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	size := picture.Bounds().Size()
	for y := range 12 {
		for x := range 10 {
			r, g, b, a := picture.At((2*x+1)*size.X/20, (2*y+1)*size.Y/24).RGBA()
			for c, got := range []uint32{r, g, b} {
				if want := uint32(80+7*y+3*x+60*c) % 256; got>>8 != want || a>>8 != 255 { //nolint:gosec // it is small
					t.Fatalf("the file has %d of 255 %d at row %d, column %d; want %d", got>>8, a>>8, y, x, want)
				}
			}
		}
	}
}

// TestZoomsThatComeTogether zooms and moves before the picture that was asked for is there, by keys and with the wheel.
func TestZoomsThatComeTogether(t *testing.T) {
	p := open(t, inspectWith(t, nil, "ordered.py", filepath.Join(t.TempDir(), "orders")), 1280, 860)
	p.js(ofPictures)
	p.show("x")
	p.until("canvas()?.getAttribute('aria-label')?.includes('rows 0 to 100')")
	p.js("canvas().focus(); for (const key of ['+', '+', 'ArrowDown']) canvas().dispatchEvent(new KeyboardEvent('keydown', { key }))")
	p.until("canvas().getAttribute('aria-label').includes('rows 44 to 69')") // 25 of 100, and a quarter of that further down
	p.js("canvas().dispatchEvent(new KeyboardEvent('keydown', { key: '0' }))")
	p.until("canvas().getAttribute('aria-label').includes('rows 0 to 100')")
	p.js("{ const box = canvas().getBoundingClientRect(); for (let i = 0; i < 6; i++) canvas().dispatchEvent(new WheelEvent('wheel', " +
		"{ deltaY: -100, ctrlKey: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 })); }")
	p.until("(([from, to]) => to - from === 23)(canvas().getAttribute('aria-label').match(/rows (\\d+) to (\\d+)/).slice(1))") // 100 exp(-1.5)
}
