// Package inspect serves a page on which people look at the arrays of a running program.
//
// The page is embedded and loads nothing from elsewhere. It talks with the server over one websocket, through which
// it says what it shows and gets the newest state of that. Each array that some page shows is read once for all pages
// (reading), as often as the budget allows (pace). A page that takes messages slowly misses states, and never the newest
// one (outbox); so neither its number nor its speed reaches the program.
//
// Whoever has the address may look: it holds a secret on loopback, and elsewhere a password is asked for (guard).
// Names and texts of the program are data on their way to the page: JSON, and text nodes there.
package inspect
