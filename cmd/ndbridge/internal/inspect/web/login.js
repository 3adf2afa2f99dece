// The form for the password. Its answer leads to the page, which then shows the array that the address says.

const [form] = document.forms;
form.addEventListener("submit", () => { form.action = "/login" + location.hash; });
