// Command house prints what has outgrown the bounds of docs/architecture.md:
// rooms, files and functions with too many lines, types with too many methods,
// structs with too many fields, interfaces with too many methods, and rooms
// without a doc.go.
//
//	go run ./internal/house [-all] [-lower] [-root DIR]
//	go run ./internal/house -figures [-root DIR]
//
// What may be beyond a bound is listed in allowed.txt, with a reason. The test next to
// it fails where something is beyond its bound and that list, and where a line of
// the list is no longer needed. The numbers in it only fall: -lower writes down
// what has become smaller. `make house` calls the command.
//
// With -figures it prints what all code together is like: how long functions and files
// are, how much is documented and tested, and the largest of each kind. With -root it
// does so for another worktree, such as one of an older commit, to compare both.
package main
