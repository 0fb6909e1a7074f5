// Package makefile reads what GNU make says of a makefile, and finds out which recipes
// have to run, and in which order.
//
//	make -n -p --trace ──▶ Database ──▶ recipes that are out of date
//	(GNU make decides)                   and the prerequisites of each
//
// Make is not reimplemented: pattern rules, search paths, order-only prerequisites and
// expansions are GNU make's business. Its trace says which recipes it would run, and its
// data base has the prerequisites of all targets.
//
// A recipe runs alone as "make TARGET", with options that have make take all other
// targets as they are: -o marks a prerequisite as made, and -W as newer than the target.
// So recipes are expanded by make, too, when they run, and not before.
//
// The package is pure.
package makefile
