package unseen

import (
	"strings"
	"unicode"
)

// lookalikes are letters and signs that most fonts draw as ASCII ones: Cyrillic,
// Greek and Armenian letters, Latin ones of phonetics, hyphens, slashes and dots.
const lookalikes = "аеорсухіјѕԁһӏԛԝгѵАВЕЅІЈКМНОРСТУХҮԌԚԜ" + "ονρυικαγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "օսհոԼՕՍ" +
	"ɑɡıȷǀɩʟʀʏ" + "ⅰⅴⅹⅼⅽⅾⅿⅠⅤⅩⅬⅭⅮⅯ" + "‐‑‒–−⁃˗" + "․‧٫ꓸ" + "⁄∕⧸" + "ː꞉∶׃" + "∣ⵏ" + "ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓞꓟꓠꓡꓢꓣꓥꓦꓧꓨꓪꓫꓬꓮꓰꓲꓳ" + "ᎪᎬᎳᎷᏃᏚᏢᏦᏴᏞᏟ"

// Disguised reports for each character of s whether it stands for an ASCII one in a
// word in which nothing tells which of the two it is: a word of another script has
// letters that no ASCII one looks like. Nil: none does.
func Disguised(s string) map[int]bool {
	if !strings.ContainsAny(s, lookalikes) {
		return nil
	}
	found := map[int]bool{}
	var suspects []int
	foreign, long := false, 0
	end := func() {
		for _, at := range suspects {
			found[at] = !foreign && long > 1 // not a dash in a sentence
		}
		suspects, foreign, long = suspects[:0], false, 0
	}
	for at, r := range s {
		switch {
		case strings.ContainsRune(lookalikes, r):
			suspects = append(suspects, at)
		case r > unicode.MaxASCII && unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r):
			foreign = true
		case unicode.IsSpace(r), r <= unicode.MaxASCII && unicode.IsPunct(r) && r != '-' && r != '_':
			end()
			continue
		}
		long++
	}
	end()
	return found
}
