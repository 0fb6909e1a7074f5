// Package translation is roost translate, which makes job files of the scripts of other
// batch systems.
package translation
