// Package importlint has the tests of the source tree itself: the import order, which
// packages are pure, which package may import which library (package_order.go), names
// that the vocabulary replaces (retired_words.go), methods of a type, files of a folder,
// the form of doc comments, and the width of lines.
//
// A new package fails until it has a place in the order. Exceptions are in allowed.go,
// each with its reason. TestTypeNames logs the measures of type names:
//
//	go test -v -run TestTypeNames ./internal/importlint
package importlint
