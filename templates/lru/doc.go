// Package lru owns a bounded memory of what was used last, for what is costly to read
// or to make again: folders, templates, schedules.
//
// The packages of documents, modules and templates call it. It never expires anything
// by time: anything that changes belongs in the key.
package lru
