// Package verify compares what a store's records refer to with the blobs that are there.
//
// It owns what counts as missing, damaged and left over while a server writes and removes both. It
// reads only: records and blobs stay as they are.
package verify
