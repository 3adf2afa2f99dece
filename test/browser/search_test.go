package browser

import (
	"testing"

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

// TestDeep lists all arrays that variables lead to, and searches among them.
func TestDeep(t *testing.T) {
	p := open(t, inspect(t, "training.py"), 1280, 860)
	p.until("document.querySelector('#tree [data-name=numbers]')")
	p.do(chromedp.Click(chromedp.CSS("#deep")))
	p.until(`document.querySelector('#tree [data-name="model.head"]') && document.querySelector('#tree [data-name=numbers]')`)
	p.do(chromedp.Focus(chromedp.CSS("#search")))
	p.keys("head")
	p.until("document.querySelectorAll('#tree .row').length === 1")
	p.do(chromedp.Click(chromedp.CSS("#deep")))
	p.until("document.querySelectorAll('#tree .row').length === 0 && document.querySelector('#deep').ariaPressed === 'false'")
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
