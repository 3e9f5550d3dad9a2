// Package journal takes what engines print: into the attempt's log, which is
// bounded, into excerpts that failures quote, into spools, and into the list of
// resources that an apply is at.
//
// It owns that no output can fill memory or a disk, that an engine never dies of a log
// which cannot be written, and that text is held back as long as the secrets in it
// are not known. The attempt writes here; agents read the progress of dead ones. It
// never redacts: it works before and after the code that does.
package journal
