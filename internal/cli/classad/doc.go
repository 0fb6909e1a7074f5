// Package classad holds roost classad, which evaluates, matches, parses and formats ads
// in files.
//
// No pool is needed. Mistakes are shown with file, line and column, and a caret under
// what is meant.
package classad
