package browser

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestPattern lists the arrays that a pattern means, which no list has, and shows one.
func TestPattern(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	p.until("document.querySelector('#tree [data-name=numbers]')")
	p.do(chromedp.Focus(chromedp.CSS("#search")))
	p.keys("mod*.he*" + kb.Enter)
	p.until(`document.querySelector('#tree [data-name="model.head"]') && !document.querySelector('#tree [data-name=numbers]')`)
	p.do(chromedp.Click(chromedp.CSS(`#tree [data-name="model.head"]`)))
	p.until(figure("max") + " === '0.25'")
	p.do(chromedp.Focus(chromedp.CSS("#search")))
	p.keys("x") // another pattern, which is not asked for yet: the list is there again
	p.until("document.querySelector('#tree-note').textContent.includes('Enter asks the program')")
	p.keys(kb.Enter)
	p.until("document.querySelector('#tree-note').textContent === 'No array has such a name now.'")
	p.keys(kb.Escape)
	p.until("document.querySelector('#tree [data-name=numbers]')")
	p.do(chromedp.Focus(chromedp.CSS("#search")))
	p.keys("model.*[" + kb.Enter) // no pattern at all
	p.until("/pattern|name/.test(document.querySelector('#tree-note').textContent)")
}

// TestBelowAName lists the arrays below a name that is none, and says so; a name that leads nowhere brings the list back.
func TestBelowAName(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	p.until("document.querySelector('#tree [data-name=numbers]')")
	p.do(chromedp.Focus(chromedp.CSS("#search")))
	p.keys(`sys.modules["__main__"].model` + kb.Enter)
	p.until(`document.querySelector('#tree .row .label')?.textContent.includes('head')`)
	p.until(`document.querySelector('main').textContent.includes('is not an array')`)
	p.keys(kb.Enter)
	p.until(figure("max") + " === '0.25'")
	p.keys("s" + kb.Enter)
	p.until("document.querySelector('#tree-note').textContent.includes('Enter asks the program')")
	p.until(`document.querySelector('main').textContent.includes('not found')`)
}

// TestTreeIsDeep: the tree has all arrays that variables lead to, and the search looks among them.
func TestTreeIsDeep(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	p.until(`document.querySelector('#tree [data-name="model.head"]') && document.querySelector('#tree [data-name=numbers]')`)
	p.do(chromedp.Focus(chromedp.CSS("#search")))
	p.keys("head")
	p.until("document.querySelectorAll('#tree .row').length === 1")
}

// TestNaNInAWeight: one of 300 weights that only a function has gets a NaN, and the page tells which, and at which step.
func TestNaNInAWeight(t *testing.T) {
	order := filepath.Join(t.TempDir(), "order")
	p := open(t, inspectWith(t, []string{"--alarm", "nan", "--step", "main().step"}, "weights.py", order), 1280, 860)
	p.until(`document.querySelector('#tree [data-name="main().state[\\"w137\\"]"]')`)
	p.until("document.querySelector('#alarm-count').hidden")
	if err := os.WriteFile(order, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	planted := time.Now()
	p.until("document.querySelector('#alarm-count:not([hidden])')")
	t.Logf("the alarm was shown after %v", time.Since(planted))
	p.keys("a")
	p.until(`document.querySelector('#alarms .events').textContent.includes('main().state["w137"] nan')`)
	p.until(`/ at step \d+|step \d+/.test(document.querySelector('#alarms .events').textContent)`)
}

// TestAlarmsOfThePage sets alarms in the page: one is raised, with its step, and one is refused.
func TestAlarmsOfThePage(t *testing.T) {
	p := open(t, inspectWith(t, []string{"--step", "step"}, "training.py"), 1280, 860)
	p.until("document.querySelector('#tree [data-name=numbers]')")
	p.keys("a")
	p.until("document.querySelectorAll('#alarms .watched li').length === 2")
	add := func(names, figure, bound string) {
		p.do(chromedp.Evaluate[chromedp.Void](`(() => {
			const form = document.querySelector('.new-alarm'), [names, bound] = form.querySelectorAll('input'), select = form.querySelector('select');
			names.value = ` + quote(names) + `; select.value = ` + quote(figure) + `; select.dispatchEvent(new Event('change')); bound.value = ` + quote(bound) + `; form.requestSubmit(); })()`))
	}
	add("numb*", "max", "100")
	p.until("document.querySelector('#alarms .watched').textContent.includes('numb*: max>100')")
	p.until("document.querySelector('#alarms').textContent.includes('Nothing has happened')") // nobody sees numbers yet
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#alarms .toggle').click()"))
	p.until("/numbers.*max>100: 9,999 at step \\d/.test(document.querySelector('#alarms .events')?.textContent)")
	add("", "stale", "soon")
	p.until("document.querySelector('#alarms [role=alert]')?.textContent.includes('not a time')")
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#alarms .watched button').click()"))
	p.until("document.querySelectorAll('#alarms .watched li').length === 2 && !document.querySelector('#alarms [role=alert]')")
}
