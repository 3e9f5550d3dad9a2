// Package byname reads the records of many clusters in parts, in the order of their names.
//
// It owns how many records are read, and kept in memory, at once. The rooms that
// go through many clusters call it: act, intake, impact and publish. It decides nothing
// and writes nothing.
package byname
