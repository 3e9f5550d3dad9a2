// Package byname reads the records of clusters whose names are known, in parts.
//
// It owns how many records are read, and kept in memory, at once. The rooms that
// go through many clusters call it: intake, impact and publish. It decides nothing
// and writes nothing.
package byname
