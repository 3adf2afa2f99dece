package handoff

import "sync/atomic"

// MailboxWord is a word anywhere in the memory of a mailbox, which a peer may change at any time.
func MailboxWord(mem []byte, offset int) *atomic.Uint32 { return Word(mem, offset) }
