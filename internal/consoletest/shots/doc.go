// Command shots takes pictures of all pages of the console.
//
// It owns which windows the pictures are of: wide and narrow, light and dark. `make
// screenshots` calls it. It never looks at a real fleet: the pictures are of the invented one.
package main
