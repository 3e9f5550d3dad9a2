// Package modules owns what the code of root modules and modules says before an engine
// runs it: variables, outputs, calls and backends that a folder's files declare, and
// which files of a tree a root module needs, through calls, symbolic links and file
// functions.
//
// Package templates calls it. Code is read as far as it is literal and never
// evaluated; files come from a holdfast.Tree, and are never written. What it reads is
// remembered by the hashes of folders.
package modules
