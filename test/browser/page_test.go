package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// drawn is whether a canvas has something on it.
const drawn = `(() => { const c = document.querySelector('%s'); if (!c || !c.width || !c.height) return false;
	return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((x) => x !== 0); })()`

// TestFirstHistogram goes from the command to a histogram and a heat map.
func TestFirstHistogram(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	p.show("numbers")
	p.until(figure("max") + " === '9,999'")
	p.until(figure("mean") + " === '4999.5'")
	p.until(fmt.Sprintf(drawn, `[aria-label="Histogram"] canvas`))
	p.until(fmt.Sprintf(drawn, `.canvas`))
	p.until("document.querySelector('[data-apart=NaN]').textContent === 'NaN 0'")
	p.until("document.querySelector('.badge').textContent === 'live'")
	p.until("document.querySelector('#budget').textContent.includes('of a core')")
	if address := eval[string](p, "location.href"); strings.Contains(address, "token") {
		t.Errorf("the token is still in the address: %s", address)
	}
	p.show("train().weight") // a local variable
	p.until(figure("nan") + " === '0'")
	p.until("document.querySelector('[aria-label=History]:not([hidden]) canvas')")
	p.until("/^mean .* a second/.test(document.querySelector('[data-rate]').textContent)")
	p.do(chromedp.Evaluate[chromedp.Void]("[...document.querySelectorAll('[aria-label=Line] button')].find((b) => b.textContent === 'spectrum').click()"))
	p.until("/^Spectrum of \\d+ elements$/.test(document.querySelector('[aria-label=Line] h2').textContent)")
	p.until(fmt.Sprintf(drawn, `[aria-label="Line"] canvas`))
}

// TestScalars draws what is one number over time.
func TestScalars(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	p.until(fmt.Sprintf(drawn, `[data-scalar=loss] canvas`))
	p.until("Number(document.querySelector('[data-scalar=step] .value').textContent) > 5")
}

// TestNumbers shows Python's own numbers: in the tree with their values, over time if they change, and each on a page of its own. What they are called is
// text, whatever it says.
func TestNumbers(t *testing.T) {
	p := open(t, inspect(t, "../../../cmd/ndbridge/testdata/followed.py"), 1280, 860)
	now := func(name string) string {
		return fmt.Sprintf("document.querySelector('#tree [data-name=%q] .now')?.textContent", name)
	}
	p.until(now("rate") + " === '0.25'")
	p.until(now("best") + " === '∞'")
	p.until(fmt.Sprintf(drawn, `[data-scalar="train().step"] canvas`))
	if card := eval[bool](p, "document.querySelector('[data-scalar=rate]') !== null"); card {
		t.Error("a constant has a line")
	}
	// Cards are in the order of the tree.
	p.until("document.querySelectorAll('[data-scalar]').length === 3")
	if names := eval[string](p, "[...document.querySelectorAll('[data-scalar]')].map((n) => n.dataset.scalar).join()"); names != `metrics["acc"],train().step,train().loss` {
		t.Errorf("the cards are %s", names)
	}
	p.show("train().step")
	p.until("document.querySelector('.badge').textContent === 'int'")
	p.until(fmt.Sprintf(drawn, `[aria-label=History] canvas`))
	p.until("Number(" + figure("value") + ".replace(',', '')) > 200 && Number(" + figure("min") + ") < 200")
	p.show("train().loss")
	p.until(figure("value") + " === 'NaN'")
	p.keys(kb.Escape)
	p.until("document.querySelector('.overview') && document.querySelector('[data-scalar=\"train().loss\"] .value').textContent === 'NaN'")
	p.keys("/")
	p.until("document.activeElement.id === 'search'")
	p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.select()")) // as in TestKeyboard
	p.keys("onerror int")
	p.until("document.querySelectorAll('#tree .row').length === 1")
	p.keys(kb.Enter)
	p.until(figure("value") + " === '1'")
	p.until("document.querySelector('.array h1').textContent.includes('<img src=x')")
	if hacked := eval[bool](p, "'hacked' in document.body.dataset"); hacked {
		t.Error("a name ran as a script")
	}
}

// TestNothing shows an array without elements, and then another one.
func TestNothing(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	p.show("nothing")
	p.until("document.querySelector('.array')?.textContent.includes('no elements')")
	p.until("document.querySelector('.canvas').dataset.version === '0' && document.querySelector('.error').hidden")
	p.show("numbers")
	p.until(fmt.Sprintf(drawn, `.canvas`))
}

// TestKeyboard does all without a mouse.
func TestKeyboard(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	p.until("document.querySelector('#tree [data-name=numbers]')")
	p.keys("/")
	p.until("document.activeElement.id === 'search'")
	p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.select()")) // the browser types what it is made to, whatever the page says
	p.keys("numb")
	p.until("document.querySelectorAll('#tree .row').length === 1")
	p.keys(kb.Enter)
	p.until("document.querySelector('.array h1')?.textContent === 'numbers'")
	p.until(fmt.Sprintf(drawn, `.canvas`))
	p.keys(kb.Escape) // out of the search
	p.until("document.activeElement.id === 'tree'")
	p.keys("z")
	p.until("document.activeElement.className === 'canvas'")
	p.keys("++++")
	// The numbers themselves are on the picture then.
	p.until("/rows \\d+ to \\d+/.test(document.querySelector('.canvas').getAttribute('aria-label')) && !document.querySelector('.canvas').getAttribute('aria-label').includes('rows 0 to 100')")
	p.keys("0")
	p.until("document.querySelector('.canvas').getAttribute('aria-label').includes('rows 0 to 100')")
	p.keys("i")
	p.until("document.querySelector('.canvas').getAttribute('aria-label').startsWith('Image')")
	p.keys("?")
	p.until("document.querySelector('#help').open")
	p.keys(kb.Escape)
	p.until("!document.querySelector('#help').open")
	p.keys("p")
	p.until("!document.querySelector('.controls').textContent.includes('nothing') && [...document.querySelectorAll('.toggle')].some((b) => b.textContent === 'difference' && !b.disabled)")
	p.keys(kb.Escape)
	p.until("document.querySelector('.overview')")
	p.show("photo") // is shown as the image that it is
	as := "document.querySelector('select[aria-label=as]').value"
	for _, want := range []string{"HWC", "", "HWC"} {
		p.until(as + " === '" + want + "' && document.querySelector('.canvas').getAttribute('aria-label')?.startsWith('" + map[bool]string{true: "Heat map", false: "Image"}[want == ""] + "')")
		p.keys("i")
	}
}

// TestUnlisted shows an array that no list has, and says what is meant by a name that nothing has.
func TestUnlisted(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	p.until("document.querySelector('#tree [data-name=numbers]')")
	p.do(chromedp.Focus(chromedp.CSS("#search")))
	p.keys("model.head" + kb.Enter)
	p.until(figure("max") + " === '0.25'")
	p.until(fmt.Sprintf(drawn, `.canvas`))
	p.do(chromedp.Evaluate[chromedp.Void]("location.hash = 'nombers'"))
	p.until("document.querySelector('main').textContent.includes('did you mean \"numbers\"')")
}

// TestThemes shows the page dark and light, as the system is and as people choose.
func TestThemes(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	background := "getComputedStyle(document.body).backgroundColor"
	scheme := func(value string) {
		p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
			})
			return err
		}))
	}
	scheme("light")
	p.until(background + " === 'rgb(245, 246, 248)'")
	scheme("dark")
	p.until(background + " === 'rgb(15, 18, 21)'")
	p.keys("t") // dark
	scheme("light")
	p.until(background + " === 'rgb(15, 18, 21)'")
	p.keys("t") // light
	scheme("dark")
	p.until(background + " === 'rgb(245, 246, 248)'")
}

// TestPhone has no sideways scrolling on a phone.
func TestPhone(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 390, 844)
	p.until("document.querySelector('#tree [data-name=numbers]')")
	p.do(chromedp.Click(chromedp.CSS("#menu")))
	p.until("getComputedStyle(document.querySelector('#side')).display !== 'none'")
	p.do(chromedp.Click(chromedp.CSS("#tree [data-name=numbers]")))
	p.until("getComputedStyle(document.querySelector('#side')).display === 'none'")
	p.until(fmt.Sprintf(drawn, `.canvas`))
	p.until(figure("max") + " === '9,999'")
	if wide := eval[[]string](p, "[...document.querySelectorAll('main, main *')].filter((n) => n.getBoundingClientRect().right > innerWidth + 1 && !n.closest('.uplot')).map((n) => n.outerHTML.slice(0, 80))"); len(wide) > 0 {
		t.Errorf("wider than the page: %s", strings.Join(wide, "\n"))
	}
	if eval[bool](p, "document.documentElement.scrollWidth > innerWidth || document.querySelector('main').scrollWidth > document.querySelector('main').clientWidth") {
		t.Error("the page scrolls sideways")
	}
}

// TestHostileNames shows names and errors as text, whatever they look like.
func TestHostileNames(t *testing.T) {
	p := open(t, inspect(t, "hostile.py"), 1280, 860)
	p.until("((all) => all.length >= 14 && !all.some((n) => n.dataset.name.includes('full()')))([...document.querySelectorAll('#tree [data-name]')])") // all are made
	for _, name := range eval[[]string](p, "[...document.querySelectorAll('#tree [data-name]')].map((n) => n.dataset.name)") {
		p.show(name)
		p.until(figure("max"))
		p.do(chromedp.Evaluate[chromedp.Void]("location.hash = ''"))
		p.until("!document.querySelector('.array')")
	}
	image := `<img src=x onerror=`
	p.show(eval[string](p, "[...document.querySelectorAll('#tree [data-name]')].map((n) => n.dataset.name).find((n) => n.includes("+quote(image)+"))"))
	p.until("document.querySelector('.array h1').textContent.includes(" + quote(image) + ")")
	if eval[bool](p, "document.body.dataset.hacked !== undefined || document.querySelectorAll('img, script:not([src]), svg[onload]').length > 0") {
		t.Errorf("a name became markup: %s", eval[string](p, "document.body.outerHTML"))
	}
	if !eval[bool](p, `((text) => text.includes('txt.exe') && !/[\u202e\0]/.test(text))(document.body.textContent)`) {
		t.Error("a character that turns the direction of text is not shown as what it is")
	}
}

// TestOtherOrigin lets a page of another origin see nothing.
func TestOtherOrigin(t *testing.T) {
	address := inspect(t, "training.py")
	p := open(t, address, 800, 600)
	p.until("document.querySelector('#tree [data-name=numbers]')")
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<!doctype html><title>another page</title>")) // the test would fail
	}))
	defer foreign.Close()
	origin := eval[string](p, "location.origin")
	p.do(chromedp.Navigate(foreign.URL)) // on the same host: the browser has the cookie for it
	for what, code := range map[string]string{
		"fetch":     `fetch(%q + "/export/npy?name=numbers", {credentials: "include"}).then((r) => "got " + r.status, () => "refused")`,
		"no-cors":   `fetch(%q + "/export/npy?name=numbers", {credentials: "include", mode: "no-cors"}).then((r) => r.type === "opaque" ? "got " + r.type : "got", () => "refused")`,
		"websocket": `new Promise((done) => { const s = new WebSocket(%q.replace("http", "ws") + "/socket"); s.onopen = () => done("got"); s.onerror = () => done("refused"); })`,
		"frame":     `new Promise((done) => { const f = document.createElement("iframe"); f.src = %q + "/"; f.onload = () => { try { done(f.contentDocument ? "got" : "refused"); } catch { done("refused"); } }; document.body.append(f); })`,
	} {
		if got := eval[string](p, fmt.Sprintf(code, origin)); got != "refused" {
			t.Errorf("%s from another origin: %s", what, got)
		}
	}
	p.forgive()
	stranger := open(t, origin, 800, 600) // without the token
	stranger.until("document.body.textContent.includes('open the address')")
	stranger.forgive()
}

// TestPlantedNaN sees NaNs in the figures, and says how soon. That takes less than a second unless the machine is busy.
func TestPlantedNaN(t *testing.T) {
	orders := filepath.Join(t.TempDir(), "orders")
	p := open(t, inspectWith(t, nil, "planted.py", orders), 1280, 860)
	p.show("values")
	p.until(figure("nan") + " === '0'")
	for i := 1; i <= 2; i++ {
		f, err := os.OpenFile(orders, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(f, 401*i); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		planted := time.Now()
		p.until(figure("nan") + " === '" + strconv.Itoa(i) + "'")
		t.Logf("NaN %d was shown after %v", i, time.Since(planted))
	}
	p.until("document.querySelector('[data-apart=NaN]').classList.contains('nan')")
	p.until("document.querySelector('#alarm-count:not([hidden])')") // and an alarm
	p.keys("a")
	p.until("document.querySelector('#alarms').open && document.querySelector('#alarms .events').textContent.includes('values nan')")
	p.keys(kb.Escape)
	p.until("document.querySelector('#alarm-count').hidden")
}

// TestProgramEnds tells why the program is gone, as text, and keeps what was shown.
func TestProgramEnds(t *testing.T) {
	stop := filepath.Join(t.TempDir(), "stop")
	p := open(t, inspect(t, "fails.py", stop), 1280, 860)
	p.show("values")
	p.until(figure("max") + " === '99,999'")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.until("document.body.dataset.state === 'gone'")
	p.until("document.querySelector('#notice').textContent.includes('<b>the data is bad</b>')")
	p.until("document.querySelector('.badge').textContent === 'program gone'")
	if got := eval[string](p, figure("max")); got != "99,999" {
		t.Errorf("what was shown is gone: %q", got)
	}
}

// TestNameWithoutArray shows an array that comes and goes: while it is not there, the page says so, beside what it was.
func TestNameWithoutArray(t *testing.T) {
	p := open(t, inspect(t, "goes.py"), 1280, 800)
	p.show("x")
	const badge, says = "document.querySelector('.badges .badge')?.textContent", "document.querySelector('.array .error')"
	p.until(badge + " === 'stale' && " + says + ".textContent.includes('not found')")
	p.do(chromedp.Sleep(time.Second)) // the next states say it, too
	if !eval[bool](p, badge+" === 'stale' && !"+says+".hidden") {
		t.Error("after a second the page says no more that the array is gone")
	}
	p.until(badge + " === 'copy' && " + says + ".hidden")
}

// TestPassword lets in whoever types the password, and nobody else, and shows the array that the address says.
func TestPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("open sésame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, inspectWith(t, []string{"--password-file", file}, "training.py")+"#numbers", 1280, 860)
	const asks = "document.readyState === 'complete' && document.activeElement.name === 'password' && location.pathname === "
	p.until(asks + "'/'")
	p.keys("open sesame" + kb.Enter) // without the accent
	p.until(asks + "'/login'")
	p.forgive() // that the server has refused
	p.keys("open sésame" + kb.Enter)
	p.until("location.pathname === '/' && location.hash === '#numbers' && document.querySelector('#tree [data-name=numbers]')")
}
