"""Artificial languages: any number of languages, in families, each generated from its code alone.

A code is `q`, a family letter a-t and a member number from 1 (`qa1`, `qt12`); ISO 639-2 reserves qaa-qtz for local use.

The family (the number of its letter, from a = 0 to t = 19) determines:

- the script: the number modulo ten selects Latin, Cyrillic, Devanagari, Arabic, Georgian, Greek, Hebrew, Armenian,
  Bengali or Ethiopic, so that qa and qk are both written in Latin letters, and qb and ql both in Cyrillic;
- the order of subject, verb and object: the number modulo three selects SVO, SOV or VSO;
- the sounds and their frequencies, the possible syllables, a proto-language of roots and affixes in these sounds, and
  a value for every other feature of GRAMMAR, drawn from generators seeded with the family's letters. The positions of
  adpositions and genitives agree with the order of verb and object four times out of five, as in natural languages.

The member (its number) determines:

- three regular sound changes out of CHANGES, which apply to every inherited root;
- the roots, function words and affixes that it keeps; it has new words in place of the others (`overlap`);
- occasionally another value for a feature of GRAMMAR other than `order`.

There are three dials:

- `overlap` (default 0.8): the share of the proto-language's roots, function words and affixes that a member keeps. Two
  members of a family share about the square of this share;
- `loans` (default 0.1): the share of roots that are international words. These are the same in all families, apart
  from sounds and script;
- `distance` (default 1): the share of the features of GRAMMAR in which families differ. Features become free in the
  order of GRAMMAR (word order last); all other features have their first value in all languages.

A larger share adds words or features to a smaller one and changes none of the others.

Names of people, places and organisations have one international form. A language pronounces it with the sounds and
syllables of its family, writes it in the family's script and inflects it with its grammar. Names do not count as roots.
No two roots or names of a language have the same spelling. Scripts with capital letters use them for names and at the
beginning of a sentence.
"""

import random
import re
from functools import cache
from typing import NamedTuple

from pydantic import Field

from xlgrid.base.settings import Strict
from xlgrid.synthetic import world
from xlgrid.synthetic.scripts import SCRIPTS, VOWELS, Phonology, fold
from xlgrid.synthetic.world import Fact, Phrase

# fmt: off
UPOS = (  # in the order of XTREME's udpos
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
)
# fmt: on
NER = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")  # in the order of WikiANN

GRAMMAR: dict[str, tuple[str, ...]] = {  # the first value is the default; set free in this order by `distance`
    "adjective": ("before", "after"),
    "plural": ("suffix", "prefix", "none"),
    "negation": ("before", "after", "prefix"),  # a word before or after the verb, or a part of the verb
    "genitive": ("after", "before"),
    "agreement": ("suffix", "prefix", "none"),  # of the verb with its subject
    "definite": ("article", "suffix", "none"),
    "numeral": ("before", "after"),
    "tense": ("suffix", "auxiliary"),
    "case": ("none", "suffix"),  # of genitives and obliques: adpositions or suffixes
    "adposition": ("before", "after"),
    "object": ("none", "suffix"),
    "time": ("late", "first"),
    "copula": ("word", "none"),
    "order": ("SVO", "SOV", "VSO"),
}
CONTENT = world.OPEN_CLASS
FUNCTION = (*world.PRONOUNS, *world.RELATIONS, "of", "and", "the", "not", "that", "is", "past", "future")
# These words are drawn after all other words, so that they do not change the others.
QUESTIONS = ("who", "what", "where")
CASES = (*world.RELATIONS, "of", "object")
PERSONS = tuple(f"{person}{number}" for person in (1, 2, 3) for number in ("sg", "pl") if (person, number) != (3, "sg"))
AFFIXES = tuple(f"-{name}" for name in (*CASES, "plural", "definite", "past", "future", "not", *PERSONS))
CHANGES = (  # sound changes: where, from which phonemes, to which; applied in this order
    ("(?<=[aeiou])[ptk](?=[aeiou])", "ptk", "bdg"),  # lenition between vowels
    ("^[bdg]", "bdg", "ptk"),  # devoicing at the beginning
    ("p(?![lr])", "p", "f"),
    ("k(?=[ei])", "k", "C"),
    ("[sz](?=i)", "sz", "SS"),
    ("(?<=[aeiou])[sz](?=[aeiou])", "sz", "rr"),  # rhotacism
    ("^[sf](?=[aeiou])", "sf", "hh"),
    ("[vb](?=[aeiou])", "vb", "bv"),
    ("[gx](?=[aeiou])", "gx", "xh"),
    ("a(?=[nmlr])", "a", "o"),
    ("o(?=[^aeiou]*$)", "o", "u"),  # raising in the last syllable
    ("[ea]$", "ea", "ie"),
    ("d(?=[ieu])", "d", "z"),
    ("r(?=[aeiou])", "r", "l"),
    ("(?<=[aeiou][nlrms])[aeiou]$", "aeiou", ""),  # loss of final vowels
)
_UPOS_OF = (
    dict.fromkeys(world.NOUNS, "NOUN")
    | dict.fromkeys(world.ADJECTIVES, "ADJ")
    | dict.fromkeys(world.VERBS, "VERB")
    | dict.fromkeys(world.NUMERALS, "NUM")
    | dict.fromkeys((*world.ADVERBS, *world.TIMES), "ADV")
    | dict.fromkeys(world.PRONOUNS, "PRON")
    | dict.fromkeys((*world.RELATIONS, "of"), "ADP")
    | {"and": "CCONJ", "the": "DET", "not": "PART", "that": "SCONJ", "is": "AUX", "past": "AUX", "future": "AUX"}
    | {"who": "PRON", "what": "PRON", "where": "ADV"}
)
_CONCEPTS = CONTENT + FUNCTION + AFFIXES
_CODE = re.compile("(q[a-t])([1-9][0-9]{0,3})")


class Token(NamedTuple):
    """A word or punctuation mark, its part of speech (one of UPOS) and its named-entity tag (one of NER)."""

    form: str
    upos: str
    ner: str = "O"


@cache
def _international() -> dict[str, str]:
    """The phonemes of every part of a name and of every root, in the international form."""
    rng = random.Random("international")

    def open_syllable() -> str:
        return rng.choice((*"bdfgklmnprstvz", "gr", "tr")) + rng.choice(VOWELS)

    def syllable() -> str:
        return open_syllable() + (rng.choice("nrlst") if rng.random() < 0.3 else "")

    # The ending of most names shows their type, as in natural languages ("-son", "-pol", "-tech"). The endings remain
    # distinct in families that merge voiced with voiceless sounds, or f with p.
    endings = {
        "family": ("son", "man", "ini", "eski", "ero", "ano"),
        "loc": ("pol", "gar", "dam", "sten", "bur", "vil"),
        "brand": ("tek", "kor", "tron", "luk", "nova", "duna"),
    }
    forms = {f"given{i}": syllable() + open_syllable() for i in range(world.GIVEN_NAMES)}
    for i in range(world.PER_TYPE):
        for part, usual in endings.items():
            stem = syllable() + open_syllable()[: -1 if rng.random() < 0.5 else None]
            ending = rng.choice(usual) if rng.random() < 0.85 else open_syllable() + "n"
            join = "" if (stem[-1] in VOWELS) != (ending[0] in VOWELS) else ("n" if ending[0] in VOWELS else "o")
            forms[f"{part}{i}"] = stem + join + ending
    forms |= {concept: syllable() + open_syllable() + rng.choice("nstkr") for concept in CONTENT}
    return forms


class _Family:
    """The features that all members of a family have in common."""

    def __init__(self, code: str):
        number = ord(code[1]) - ord("a")
        rng = random.Random(code)
        self.code = code
        self.script = SCRIPTS[number % len(SCRIPTS)]
        self.sounds = Phonology(self.script, rng)
        self.name = SCRIPTS[0].write(self.sounds.word(2, rng)).capitalize()
        rng = random.Random(f"{code} grammar")
        self.grammar = {feature: rng.choice(values) for feature, values in GRAMMAR.items()}
        self.grammar["order"] = GRAMMAR["order"][number % 3]
        verb_last = self.grammar["order"] == "SOV"
        for feature, value_if_last in (("adposition", "after"), ("genitive", "before")):
            usual = verb_last == (rng.random() < 0.8)
            self.grammar[feature] = value_if_last if usual else next(v for v in GRAMMAR[feature] if v != value_if_last)
        rng = random.Random(f"{code} roots")
        self.taken: set[str] = set()
        self.foreign = {
            part: self.distinct(self.sounds.adapt(form), self.taken, rng) for part, form in _international().items()
        }
        taken, affixes = set(self.taken), set[str]()
        self.roots = {
            concept: self.distinct(self.root(concept, rng), affixes if concept in AFFIXES else taken, rng)
            for concept in _CONCEPTS
        }
        rng = random.Random(f"{code} questions")
        self.roots |= {word: self.distinct(self.sounds.word(1, rng), taken, rng) for word in QUESTIONS}

    def root(self, concept: str, rng: random.Random) -> str:
        """A random root, function word or affix."""
        if concept in AFFIXES:
            return self.sounds.affix(rng)
        return self.sounds.word(1 if concept in FUNCTION else rng.choice((2, 2, 2, 2, 3)), rng)

    def distinct(self, word: str, taken: set[str], rng: random.Random) -> str:
        """A word that is lengthened until its spelling is not in `taken`. The spelling is added to `taken`."""
        while self.script.write(word) in taken:
            word += (rng.choice("ptkmnls") if word[-1] in VOWELS else "") + rng.choice(VOWELS)
        taken.add(self.script.write(word))
        return word


_family = cache(_Family)


class ArtificialLanguage:
    """An artificial language, created by `artificial`.

    Attributes:
        code: the code of the language.
        name: a pronounceable name.
        family: the code of the family, such as `qa`.
        script: the code of the script in ISO 15924.
        direction: `ltr` or `rtl`.
        grammar: a value of GRAMMAR for each of its features.
        origins: the origin of each root: `loan`, the code of a family, or the code of this language.
    """

    def __init__(self, code: str, overlap: float, loans: float, distance: float):
        family = _family(code[:2])
        rng = random.Random(code)
        self.code = code
        self.family = code[:2]
        self.name = f"{family.name} {code[2:]}"
        self.script = family.script.code
        self.direction = family.script.direction
        self._letters = family.script
        free = round(distance * len(GRAMMAR))
        self.grammar: dict[str, str] = {}
        for i, (feature, values) in enumerate(GRAMMAR.items()):
            shifted, other = rng.random() < 0.08 and feature != "order", rng.choice(values)
            self.grammar[feature] = values[0] if i >= free else other if shifted else family.grammar[feature]
        self.origins, self._roots = _lexicon(code, overlap, loans, rng)
        self._words = {word: Token(self._write(self._roots[word]), upos) for word, upos in _UPOS_OF.items()}
        self._nouns: dict[tuple[str, bool, bool, str], Token] = {}
        self._names: dict[tuple[str, str], list[Token]] = {}
        self._verbs: dict[tuple[str, str, str, bool], Token] = {}

    def realise(self, fact: Fact) -> list[Token]:
        """The sentence of a fact, as tokens that are spelt as in running text, with a full stop at the end."""
        tokens = self._clause(fact)
        if self._letters.cased:
            tokens[0] = tokens[0]._replace(form=_capitalised(tokens[0].form))
        tokens.append(Token(self._letters.stop, "PUNCT"))
        return tokens

    def sentence(self, fact: Fact) -> str:
        """The sentence of a fact as text: the tokens of `realise`, separated by spaces, with the full stop attached."""
        *words, stop = self.realise(fact)
        return " ".join(word.form for word in words) + stop.form

    def mention(self, fact: Fact, entity: str) -> tuple[int, int]:
        """The first character of a named entity's name in `sentence(fact)`, and the character after its last.

        Raises:
            ValueError: the fact does not mention the entity.
        """
        # These sentences are not capitalised at the beginning, because a name may begin with an adposition there. The
        # lengths are the same.
        words = self._clause(fact)
        forms = [word.form for word in words]
        names = {tuple(token.form for token in self._name(entity, role)) for role in ("", *CASES)}
        for first, word in enumerate(words):
            last = first + 1
            while last < len(words) and words[last].ner.startswith("I-"):
                last += 1
            if word.ner.startswith("B-") and tuple(forms[first:last]) in names:
                start = len(" ".join([*forms[:first], ""]))
                return start, start + len(" ".join(forms[first:last]))
        raise ValueError(f"{entity} is not mentioned in {self.sentence(fact)!r}")

    def _write(self, phonemes: str) -> str:
        return self._letters.write(phonemes)

    def _clause(self, fact: Fact) -> list[Token]:
        return [token for _, tokens in self.constituents(fact) for token in tokens]

    def constituents(self, fact: Fact) -> list[tuple[str, list[Token]]]:
        """The parts of the sentence of a fact in their order, each after its role: `verb`, with its negation and
        auxiliary; `patient`; or a relation of Universal Dependencies. The parts of the content follow after `that`."""
        grammar, words = self.grammar, self._words
        subject = [("nsubj", self._phrase(fact.agents[0]))]
        for agent in fact.agents[1:]:
            subject += [("cc", [words["and"]]), ("nsubj", self._phrase(agent))]
        verb = [("verb", self._verb_group(fact))]
        time = [("advmod", [words[fact.time]])] if fact.time else []
        adverb = [("advmod", [words[fact.adverb]])] if fact.adverb else []
        role = "" if fact.predicate == "be" else "object"
        rest = [("patient", self._phrase(fact.patient, role))] if fact.patient else []
        obliques = [("obl", self._phrase(phrase, relation)) for relation, phrase in fact.obliques]
        first, late = (time, []) if grammar["time"] == "first" else ([], time)
        if grammar["order"] == "SOV":
            clause = [*first, *subject, *obliques, *rest, *late, *adverb, *verb]
        else:
            opening = verb + subject if grammar["order"] == "VSO" else subject + verb
            clause = [*first, *opening, *rest, *adverb, *obliques, *late]
        return [*clause, ("that", [words["that"]]), *self.constituents(fact.content)] if fact.content else clause

    def word(self, concept: str) -> Token:
        """The word of a concept without inflection."""
        return self._words[concept]

    def _verb_group(self, fact: Fact) -> list[Token]:
        """The verb with its negation and auxiliary, or without the copula if the language has none."""
        grammar, words = self.grammar, self._words
        silent = fact.predicate == "be" and grammar["copula"] == "none"
        group = [] if silent else [self._verb(fact)]
        if grammar["tense"] == "auxiliary" and fact.tense != "present":
            group.insert(len(group) if grammar["order"] == "SOV" else 0, words[fact.tense])
        if not fact.positive and (silent or grammar["negation"] != "prefix"):
            group.insert(len(group) if grammar["negation"] == "after" else 0, words["not"])
        return group

    def _verb(self, fact: Fact) -> Token:
        first = fact.agents[0]
        person = world.PRONOUNS[first.head][0] if first.head in world.PRONOUNS else 3
        subject = f"{person}{'pl' if first.plural or len(fact.agents) > 1 else 'sg'}"
        key = (fact.predicate, fact.tense, subject, fact.positive)
        if key not in self._verbs:
            grammar, stem = self.grammar, "is" if fact.predicate == "be" else fact.predicate
            person_affix = self._roots.get(f"-{subject}", "")
            parts = [
                self._roots["-not"] if grammar["negation"] == "prefix" and not fact.positive else "",
                person_affix if grammar["agreement"] == "prefix" else "",
                self._roots[stem],
                self._roots.get(f"-{fact.tense}", "") if grammar["tense"] == "suffix" else "",
                person_affix if grammar["agreement"] == "suffix" else "",
            ]
            self._verbs[key] = Token(self._write("".join(parts)), _UPOS_OF[stem])
        return self._verbs[key]

    def _phrase(self, phrase: Phrase, role: str = "") -> list[Token]:
        """A noun phrase marked for its role: "" (subject), "object" or one of world.RELATIONS."""
        grammar, words = self.grammar, self._words
        named = phrase.head in world.entities()
        tokens = list(self._name(phrase.head, role)) if named else [self._noun(phrase, role)]
        if phrase.adjective:
            self._beside(tokens, [words[phrase.adjective]], "adjective")
        if phrase.owner:
            self._beside(tokens, self._with_adposition(list(self._name(phrase.owner, "of")), "of"), "genitive")
        if phrase.numeral:
            self._beside(tokens, [words[phrase.numeral]], "numeral")
        determined = phrase.owner and grammar["genitive"] == "before"
        if phrase.definite and grammar["definite"] == "article" and not determined:
            tokens.insert(0, words["the"])
        return self._with_adposition(tokens, role)

    def _beside(self, tokens: list[Token], others: list[Token], feature: str) -> None:
        """Add `others` before or after `tokens`, as a feature of the grammar determines."""
        place = 0 if self.grammar[feature] == "before" else len(tokens)
        tokens[place:place] = others

    def _with_adposition(self, tokens: list[Token], role: str) -> list[Token]:
        if role and role != "object" and self.grammar["case"] == "none":
            self._beside(tokens, [self._words[role]], "adposition")
        return tokens

    def _ending(self, role: str) -> str:
        """The case suffix that marks a role, if any."""
        marked = self.grammar["object" if role == "object" else "case"] == "suffix"
        return self._roots[f"-{role}"] if role and marked else ""

    def _noun(self, phrase: Phrase, role: str) -> Token:
        if phrase.head not in world.NOUNS:  # a pronoun, or what `be` says of the subject
            return self._words[phrase.head]
        key = (phrase.head, phrase.definite, phrase.plural, role)
        if key not in self._nouns:
            grammar, roots = self.grammar, self._roots
            plural = roots["-plural"] if phrase.plural else ""
            parts = [
                plural if grammar["plural"] == "prefix" else "",
                roots[phrase.head],
                plural if grammar["plural"] == "suffix" else "",
                roots["-definite"] if phrase.definite and grammar["definite"] == "suffix" else "",
                self._ending(role),
            ]
            self._nouns[key] = Token(self._write("".join(parts)), "NOUN")
        return self._nouns[key]

    def _name(self, entity: str, role: str) -> list[Token]:
        """The words of a named entity. The head has the case suffix."""
        if (entity, role) not in self._names:
            _, kind, parts = world.entities()[entity]
            ending = self._ending(role)
            if kind == "ORG" and len(parts) > 1:
                tokens = [self._part(parts[0], ending)]
                owner = self._with_adposition([self._part(parts[1], self._ending("of"))], "of")
                self._beside(tokens, owner, "genitive")
            else:
                tokens = [self._part(parts[-1], ending)]
                order = self.grammar["adjective"] if kind == "LOC" else "before"
                place = 0 if order == "before" else 1
                tokens[place:place] = [self._part(part, "") for part in parts[:-1]]
            tagged = [token._replace(ner=f"{'I' if i else 'B'}-{kind}") for i, token in enumerate(tokens)]
            self._names[entity, role] = tagged
        return self._names[entity, role]

    def _part(self, part: str, ending: str) -> Token:
        form = self._write(self._roots[part] + ending)
        return Token(_capitalised(form) if self._letters.cased else form, "PROPN")


def _lexicon(code: str, overlap: float, loans: float, rng: random.Random) -> tuple[dict[str, str], dict[str, str]]:
    """The origin of every root, and the phonemes of every root, function word, affix and part of a name."""
    family = _family(code[:2])
    changes = [CHANGES[i] for i in sorted(rng.sample(range(len(CHANGES)), 3))]
    # Both candidates are generated for all concepts, regardless of the dials: a dial only selects between fixed words.
    taken, affixes = set(family.taken), set[str]()
    inherited, replaced = {}, {}
    for concept in _CONCEPTS:
        root = family.roots[concept]
        others, candidate = (affixes, root) if concept in AFFIXES else (taken, _changed(root, changes, family))
        inherited[concept] = family.distinct(candidate, others, rng)
        replaced[concept] = family.distinct(family.root(concept, rng), others, rng)
    kept: set[str] = set()
    for group in (CONTENT, FUNCTION, AFFIXES):
        kept.update(rng.sample(group, len(group))[: round(overlap * len(group))])
    own_rng = random.Random(f"{code} questions")
    for word in QUESTIONS:
        inherited[word] = family.distinct(_changed(family.roots[word], changes, family), taken, own_rng)
        replaced[word] = family.distinct(family.sounds.word(1, own_rng), taken, own_rng)
        # Each word is decided separately, because three words cannot have an exact share. A larger share keeps the
        # words of a smaller one.
        if own_rng.random() < overlap:
            kept.add(word)
    borrowed = set(random.Random("loans").sample(CONTENT, len(CONTENT))[: round(loans * len(CONTENT))])
    origins = {root: "loan" if root in borrowed else family.code if root in kept else code for root in CONTENT}
    roots = {concept: (inherited if concept in kept else replaced)[concept] for concept in (*_CONCEPTS, *QUESTIONS)}
    names = {part: form for part, form in family.foreign.items() if part not in _CONCEPTS or part in borrowed}
    return origins, roots | names


def _changed(root: str, changes: list[tuple[str, str, str]], family: _Family) -> str:
    """A root after the sound changes of its language."""
    for where, before, after in changes:
        table = str.maketrans(before, after) if after else str.maketrans("", "", before)
        root = "".join(part.translate(table) if i % 2 else part for i, part in enumerate(re.split(f"({where})", root)))
    return fold(root, family.script.consonants())


def _capitalised(word: str) -> str:
    return word[0].upper() + word[1:]


def is_artificial(code: str) -> bool:
    """Whether a code has the form of the code of an artificial language, such as qa1."""
    return _CODE.fullmatch(code) is not None


def artificial(code: str, overlap: float = 0.8, loans: float = 0.1, distance: float = 1.0) -> ArtificialLanguage:
    """The artificial language of a code. Calls with the same arguments return the same object.

    Args:
        code: the code of the language.
        overlap, loans, distance: the dials, shares from 0 to 1; see the docstring of the module.

    Raises:
        ValueError: the code is not the code of an artificial language.
    """
    if not is_artificial(code):
        raise ValueError(
            f"{code!r} is not the code of an artificial language: expected q, a family letter a-t and a member number "
            f"1-9999 without leading zeros, such as qa1 or qt12"
        )
    return _made(code, float(overlap), float(loans), float(distance))


_made = cache(ArtificialLanguage)


class Dials(Strict):
    """The differences between the artificial languages."""

    overlap: float = Field(default=0.8, ge=0, le=1, description="share of the words of a family that a member keeps")
    loans: float = Field(
        default=0.1, ge=0, le=1, description="share of roots that all families have, up to sounds and script"
    )
    distance: float = Field(
        default=1.0, ge=0, le=1, description="share of the features of grammar in which families differ"
    )

    def language(self, code: str) -> ArtificialLanguage:
        """The language of a code, see `artificial`."""
        return artificial(code, self.overlap, self.loans, self.distance)
