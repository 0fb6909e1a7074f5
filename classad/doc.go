// Package classad is the ClassAd language: how machines and jobs describe themselves and
// what they ask of each other.
//
// An [Ad] is an ordered set of attributes, each a name and an expression. [Parse] reads
// HTCondor's new syntax, [ParseOld] its line syntax, and an ad is JSON through
// encoding/json. Expressions are immutable trees ([Expr]); evaluating one gives a
// [Value], which may be UNDEFINED (something is not known) or ERROR (something makes no
// sense), and never a Go error or a panic. [Match] evaluates the Requirements of two ads
// against each other.
//
// Lists and nested ads are lazy: their elements are evaluated when somebody asks for
// them, nested ads and what a subscript gives where they stand, what a function or a
// selection takes from a list where that stands. [Expr.String] and [Ad.String] print
// everything that was read, parentheses included, so that reading it again gives the
// same; [Value.String] prints as HTCondor shows results. [Conjuncts] and [References]
// take an expression apart, and [Reasons] says why two ads do not match.
//
// To match one ad with thousands, put these into a [Table]: [Table.Compile] turns a
// request into code over their columns, which costs a few nanoseconds for each of them
// where [Match] takes microseconds, and says the same; [Query.Explain] counts what each
// condition excludes.
//
// The semantics are those of HTCondor's engine as HTCondor runs it (manual, "ClassAds";
// src/classad at release 25), with the scope fallback of old ClassAds: a name that an ad
// does not have is looked for in the other ad of a match, if the ad is not nested in
// another. Where the manual and the engine disagree, the engine is followed, except for
// its plain bugs:
//
//   - relTime("…") is a relative time, not a real.
//   - an integer literal that does not fit 64 bits is refused, where upstream reads 0.
//   - int() of NaN or an infinity is ERROR, and so is a relative time that is not finite,
//     where upstream's C++ is undefined.
//   - int("9007199254740993") is that number, not the nearest real.
//   - times are not cut to 32 bits: absTime(3000000000) is in 2065.
//   - list =?= list is always ERROR.
//   - an attribute that depends on itself is UNDEFINED.
//   - stringListMax of negative numbers is the greatest of them, and stringListMin of
//     huge ones the least.
//   - regexps(…, "g") and replaceAll() with a pattern that matches nothing at the end
//     replace that too, instead of being ERROR.
//   - absTime(x, n) and relTime(x) read a computed string as they do a literal one.
//   - ad["name"] of a nested ad still finds names in the ads around it, and so does
//     {ad}.name; the first argument of evalInEachContext
//     and countMatches does not change where their second is looked up.
//   - absTime("…") with a literal that names no zone is in UTC, not in the zone of
//     whoever reads it.
//   - userMap, which upstream answers from a file, gives its default, and so does
//     userHome, as it does upstream unless it is told
//     otherwise.
//   - regular expressions are RE2's (package regexp): linear time, without
//     back-references and look-around, which give ERROR.
//
// The package is pure: no I/O, no clock, no goroutines, no global state. The time and the
// randomness that expressions ask for come in with an [EvalEnv]. Every evaluation is
// bounded in depth and steps, and every parse in size and depth, so that no input hangs
// or crashes.
package classad
