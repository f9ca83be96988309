"""Natural languages: golden sentences, every clause of every packaged lexicon, and the errors of a lexicon with holes."""

import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.synthetic import natural
from xlgrid.synthetic.logic import IS_A, VARIABLE, Literal, Rule
from xlgrid.synthetic.natural import Lexicon, concepts, lexicon, natural_codes, taxonomy

CODES = natural_codes()
ENTITIES = concepts().persons + concepts().animals
MEMBERS = tuple(name for names in taxonomy().values() for name in names)
PREDICATES = concepts().attributes + concepts().relations
# How Unicode's names of the letters begin; of other scripts only Latin letters are refused.
SCRIPTS = {"Latn": "LATIN", "Cyrl": "CYRILLIC", "Arab": "ARABIC", "Hans": "CJK UNIFIED"}
# Unicode's classes of letters by direction.
DIRECTIONS = {"ltr": {"L"}, "rtl": {"R", "AL"}}


def literal(text: str) -> Literal:
    """ "not eat cat dog" is "the cat does not eat the dog", "big ?" is "someone is big"."""
    words = text.split()
    positive = words[0] != "not"
    predicate, subject, *object_ = words if positive else words[1:]
    return Literal(predicate, subject, object_[0] if object_ else None, positive)


def say(language: Lexicon, text: str) -> str:
    """A statement, or a rule where the text holds an arrow."""
    if " -> " in text:
        conditions, conclusion = text.split(" -> ")
        return language.rule(Rule(tuple(literal(part) for part in conditions.split(", ")), literal(conclusion)))
    return language.statement(literal(text))


GOLDEN = {
    "en": {
        "big anne": "Anne is big.",
        "not kind bald_eagle": "The bald eagle is not kind.",
        "chase cat dog": "The cat chases the dog.",
        "not chase cat dog": "The cat does not chase the dog.",
        "big ?, not green ? -> kind ?": "If someone is big and they are not green then they are kind.",
        "see ? cat, not like ? dog -> visit ? anne": (
            "If someone sees the cat and they do not like the dog then they visit Anne."
        ),
        "chase cat dog, big dog -> not eat cat dog": (
            "If the cat chases the dog and the dog is big then the cat does not eat the dog."
        ),
    },
    "fr": {
        "white cow": "La vache est blanche.",
        "not white squirrel": "L'écureuil n'est pas blanc.",
        "not like anne bald_eagle": "Anne n'aime pas l'aigle à tête blanche.",
        "visit erin dog": "Erin rend visite au chien.",
        "not visit bear anne": "L'ours ne rend pas visite à Anne.",
        "big ?, not green ? -> kind ?": "Si quelqu'un est grand et s'il n'est pas vert, alors il est gentil.",
        "see ? cat, big cat, brave ? -> white ?": (
            "Si quelqu'un voit le chat et si le chat est grand et si cette personne est courageuse, "
            "alors cette personne est blanche."
        ),
        "like anne bob -> not like bob anne": "Si Anne aime Bob, alors Bob n'aime pas Anne.",
    },
    "de": {
        "chase dog bear": "Der Hund jagt den Bären.",
        "chase bear cat": "Der Bär jagt die Katze.",
        "not see rabbit lion": "Das Kaninchen sieht den Löwen nicht.",
        "eat anne mouse": "Anne isst die Maus.",
        "eat cat mouse": "Die Katze frisst die Maus.",
        "big ?, not green ? -> kind ?": "Wenn jemand groß ist und er nicht grün ist, dann ist er freundlich.",
        "not eat ? dog, see cat dog -> not eat ? cat": (
            "Wenn jemand den Hund nicht isst und die Katze den Hund sieht, dann isst diese Person die Katze nicht."
        ),
        "like anne bear -> not visit dog anne": "Wenn Anne den Bären mag, dann besucht der Hund Anne nicht.",
    },
    "es": {
        "red bald_eagle": "El águila calva es roja.",
        "see bob bald_eagle": "Bob ve al águila calva.",
        "chase cat dog": "El gato persigue al perro.",
        "not bite dog cow": "El perro no muerde a la vaca.",
        "eat lion anne": "El león se come a Anne.",
        "big ?, not red ? -> kind ?": "Si alguien es grande y no es rojo, entonces es amable.",
        "see ? dog, red dog -> red ?": "Si alguien ve al perro y el perro es rojo, entonces esa persona es roja.",
    },
    "it": {
        "white tiger": "La tigre è bianca.",
        "not white squirrel": "Lo scoiattolo non è bianco.",
        "chase bear squirrel": "L'orso insegue lo scoiattolo.",
        "not visit dog bald_eagle": "Il cane non va a trovare l'aquila calva.",
        "not big ?, green ? -> kind ?": "Se qualcuno non è grande ed è verde, allora è gentile.",
        "big anne, big erin -> nice erin": "Se Anne è grande ed Erin è grande, allora Erin è simpatica.",
        "big cat, green ? -> red ?": "Se il gatto è grande e qualcuno è verde, allora quella persona è rossa.",
        "see ? dog, red dog -> not red ?": (
            "Se qualcuno vede il cane e il cane è rosso, allora quella persona non è rossa."
        ),
    },
    "ru": {
        "blue cow": "Корова синяя.",
        "not blue lion": "Лев не синий.",
        "chase lion dog": "Лев преследует собаку.",
        "not chase dog lion": "Собака не преследует льва.",
        "see bob bald_eagle": "Боб видит белоголового орлана.",
        "like mouse gary": "Мышь любит Гэри.",
        "big ?, not green ? -> kind ?": "Если кто-то большой и он не зелёный, то он добрый.",
        "like ? anne, big anne -> find ? fiona": (
            "Если кто-то любит Анну и Анна большая, то этот человек находит Фиону."
        ),
        "big ?, not green ?, white ? -> kind ?": "Если кто-то большой, и он не зелёный, и он белый, то он добрый.",
    },
    "zh": {
        "big anne": "安妮很大。",
        "not big anne": "安妮不大。",
        "green cat": "猫是绿色的。",
        "not green cat": "猫不是绿色的。",
        "not see dog bald_eagle": "狗没有看见白头鹰。",
        "big ?, not green ? -> kind ?": "如果某人很大，并且他不是绿色的，那么他很善良。",
        "chase ? dog, cold dog -> not bite ? anne": "如果某人追赶狗，并且狗很冷，那么这个人不咬安妮。",
    },
    "fa": {
        "big anne": "آنا بزرگ است.",
        "not nice cat": "گربه خوش‌اخلاق نیست.",
        "see cat bald_eagle": "گربه عقاب سرسفید را می‌بیند.",
        "not like dog bob": "سگ باب را دوست ندارد.",
        "big ?, not green ? -> kind ?": "اگر شخصی بزرگ باشد و سبز نباشد، آنگاه او مهربان است.",
        "like ? cat, not eat ? dog -> bite ? bob": (
            "اگر شخصی گربه را دوست داشته باشد و سگ را نخورد، آنگاه او باب را گاز می‌گیرد."
        ),
        "see ? cat, not big cat -> not kind ?": "اگر شخصی گربه را ببیند و گربه بزرگ نباشد، آنگاه آن شخص مهربان نیست.",
    },
    "ar": {
        "big cow": "البقرة كبيرة.",
        "not big dog": "الكلب ليس كبيرًا.",
        "not red anne": "آنا ليست حمراء.",
        "chase cat dog": "القطة تطارد الكلب.",
        "not see bear bald_eagle": "الدب لا يرى النسر الأصلع.",
        "big ?, not green ? -> kind ?": "إذا كان شخص ما كبيرًا ولم يكن أخضر، فإنه طيب.",
        "not like ? cat, not big cat -> not nice ?": (
            "إذا كان شخص ما لا يحب القطة ولم تكن القطة كبيرة، فإن ذلك الشخص ليس لطيفًا."
        ),
    },
}


@pytest.mark.parametrize(
    ("code", "text", "sentence"), [(code, *pair) for code, pairs in GOLDEN.items() for pair in pairs.items()]
)
def test_golden_sentence(code: str, text: str, sentence: str) -> None:
    assert say(lexicon(code), text) == sentence


def facts() -> list[Literal]:
    signs = (True, False)
    attributes = [Literal(a, s, None, p) for a in concepts().attributes for s in ENTITIES for p in signs]
    relations = [
        Literal(r, s, o, p) for r in concepts().relations for s in ENTITIES for o in ENTITIES if s != o for p in signs
    ]
    return attributes + relations


FACTS = facts()


def blemishes(language: Lexicon, sentence: str) -> list[str]:
    """Mistakes of form that no sentence of any language may have."""
    mistakes = [mark for mark in ("{", "}", "  ", " .", " ,", " ?", "' ") if mark in sentence]
    if sentence != sentence.strip():
        mistakes.append("space at an end")
    if not unicodedata.category(sentence[-1]).startswith("P"):
        mistakes.append("no final punctuation")
    letters = [letter for letter in sentence if letter.isalpha()]
    if letters[0].islower():
        mistakes.append("no capital")
    names = list(map(unicodedata.name, letters))
    prefix = SCRIPTS.get(language.script)
    if not all(name.startswith(prefix) if prefix else not name.startswith("LATIN") for name in names):
        mistakes.append(f"letters outside {language.script}")
    if not {unicodedata.bidirectional(letter) for letter in letters} <= DIRECTIONS[language.direction]:
        mistakes.append(f"letters not {language.direction}")
    return mistakes


def kinds() -> list[Literal]:
    signs = (True, False)
    attributes = [Literal(a, s, None, p) for a in concepts().attributes for s in (*MEMBERS, *taxonomy()) for p in signs]
    return attributes + [
        Literal(IS_A, name, kind, p) for name in ENTITIES + MEMBERS for kind in taxonomy() for p in signs
    ]


def sentences(language: Lexicon) -> list[tuple[str, Literal]]:
    """Every sentence about one fact, and what it means."""
    return [(language.statement(fact), fact) for fact in (*FACTS, *{*kinds()} - {*FACTS})]


@pytest.mark.parametrize("code", CODES)
def test_every_statement_is_clean(code: str) -> None:
    language = lexicon(code)
    assert {s: b for s, _ in sentences(language) if (b := blemishes(language, s))} == {}


@pytest.mark.parametrize("code", CODES)
def test_no_two_literals_share_a_sentence(code: str) -> None:
    meant: dict[str, list[Literal]] = {}
    for sentence, fact in sentences(lexicon(code)):
        meant.setdefault(sentence, []).append(fact)
    assert {sentence: facts for sentence, facts in meant.items() if len(facts) > 1} == {}


def class_words(entries: dict[str, Any]) -> dict[str, set[str]]:
    """Class -> the words that only its names have; in Chinese, which has no spaces, every character is a word."""
    spaced = entries["script"] not in ("Hans", "Hant", "Jpan")
    words = {
        name: {word.casefold() for form in leaves(entry) for word in (form.split() if spaced else form)}
        for group in entries["classes"].values()
        for name, entry in group.items()
    }
    counts = Counter(word for class_ in words.values() for word in class_)
    # Articles and particles stand before several classes, or are shorter than any noun.
    return {
        name: {word for word in class_ if counts[word] == 1 and len(word) > 2 * spaced}
        for name, class_ in words.items()
    }


def leaves(entry: Any) -> list[str]:
    """The texts of an entry of a lexicon, in all its forms."""
    return [entry] if isinstance(entry, str) else [text for below in entry.values() for text in leaves(below)]


def telling_names(entries: dict[str, Any]) -> list[str]:
    """Members of the taxonomy whose name holds a word of a class: who reads the word need not know the class."""
    names = {name: leaves(entry) for group in entries["entities"].values() for name, entry in group.items()}
    return [
        f"{member} ({form}) holds {word!r}, a word of the class {kind}"
        for kind, words in class_words(entries).items()
        for word in sorted(words)
        for member in MEMBERS
        for form in names[member]
        if word in form.casefold()
    ]


@pytest.mark.parametrize("code", CODES)
def test_no_name_of_a_member_spells_a_class(code: str) -> None:
    assert class_words(packaged(code)).keys() == set(taxonomy()) and all(class_words(packaged(code)).values())
    assert telling_names(packaged(code)) == [], "choose other names, such as those of a species, or of a loan word"


@pytest.mark.parametrize(
    ("code", "group", "name", "word"),
    [("de", "animal", "der Thunfisch", "fisch"), ("zh", "any", "鲨鱼", "鱼"), ("fa", "any", "ماهی تن", "ماهی")],
)
def test_a_name_that_spells_its_class_is_noticed(code: str, group: str, name: str, word: str) -> None:
    entries = packaged(code)
    entries["entities"][group]["mackerel"] = name
    assert telling_names(entries) == [f"mackerel ({name}) holds {word!r}, a word of the class fish"]


def test_a_class_is_a_subject_in_statements_only() -> None:
    assert lexicon("en").statement(Literal("big", "fish")) == "A fish is big."
    with pytest.raises(ValueError, match="unknown entity 'fish'"):
        lexicon("en").rule(Rule((Literal("big", "fish"),), Literal("kind", "anne")))


def test_the_taxonomy_has_the_animals_first_and_nobody_twice() -> None:
    assert (len(taxonomy()), len(MEMBERS), len(set(MEMBERS))) == (4, 27, 27)
    assert set(concepts().animals) < set(MEMBERS)
    assert not set(taxonomy()) & set(ENTITIES + MEMBERS + PREDICATES)


def literals(subjects: tuple[str, ...]) -> st.SearchStrategy[Literal]:
    def one(predicate: str, subject: str, object_: str, positive: bool) -> Literal:
        return Literal(predicate, subject, object_ if predicate in concepts().relations else None, positive)

    return st.builds(
        one, st.sampled_from(PREDICATES), st.sampled_from(subjects), st.sampled_from(ENTITIES), st.booleans()
    )


def is_bound(rule: Rule) -> bool:
    return rule.conclusion.subject != VARIABLE or any(c.subject == VARIABLE for c in rule.conditions)


# The variable as often as all entities together, as in RuleTaker.
ANYONE = literals((*ENTITIES, *[VARIABLE] * len(ENTITIES)))
RULES = st.builds(Rule, st.lists(ANYONE, min_size=1, max_size=3).map(tuple), ANYONE).filter(is_bound)


@given(rule=RULES)
def test_every_rule_is_clean(rule: Rule) -> None:
    sentences = {code: lexicon(code).rule(rule) for code in CODES}
    assert {s: b for code, s in sentences.items() if (b := blemishes(lexicon(code), s))} == {}


@given(rules=st.lists(RULES, unique=True, min_size=2, max_size=30))
def test_no_two_rules_share_a_sentence(rules: list[Rule]) -> None:
    shared = [code for code in CODES if len({lexicon(code).rule(rule) for rule in rules}) < len(rules)]
    assert shared == []


def test_every_lexicon_of_the_package_is_a_language_and_codes_are_sorted() -> None:
    files = (Path(natural.__file__).parent / "lexicons").iterdir()
    assert sorted(f"{code}.yaml" for code in CODES) == sorted(path.name for path in files)
    assert list(CODES) == sorted(CODES)
    assert {"de", "en", "fr", "ru"} <= set(CODES), "the demo has these"


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        (Literal("bgi", "anne"), "unknown attribute 'bgi', did you mean 'big'"),
        (Literal("chace", "anne", "bob"), "unknown relation 'chace', did you mean 'chase'"),
        (Literal("big", "ann"), "unknown entity 'ann', did you mean 'anne'"),
        (Literal("chase", "anne", "bop"), "unknown entity 'bop', did you mean 'bob'"),
        (Literal("big", VARIABLE), "unknown entity '\\?'"),
        (Literal(IS_A, "cat", "mamal"), "unknown class 'mamal', did you mean 'mammal'"),
    ],
)
def test_unknown_concept_names_its_neighbour(fact: Literal, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lexicon("en").statement(fact)


def test_rule_whose_conclusion_nothing_binds_is_refused() -> None:
    with pytest.raises(ValueError, match="no condition says who"):
        lexicon("en").rule(Rule((Literal("big", "anne"),), Literal("kind", VARIABLE)))


def packaged(code: str) -> dict[str, Any]:
    path = Path(natural.__file__).parent / "lexicons" / f"{code}.yaml"
    entries: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return entries


def written(folder: Path, code: str, entries: Any) -> Path:
    text = yaml.dump(entries, allow_unicode=True, sort_keys=False)
    (folder / f"{code}.yaml").write_text(text, encoding="utf-8")
    return folder


def put(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(entries: dict[str, Any]) -> None:
        for key in path[:-1]:
            entries = entries[key]
        entries[path[-1]] = value

    return change


def drop(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(entries: dict[str, Any]) -> None:
        for key in path[:-1]:
            entries = entries[key]
        del entries[path[-1]]

    return change


def rename(old: str, new: str, *path: str) -> Callable[[dict[str, Any]], None]:
    def change(entries: dict[str, Any]) -> None:
        for key in path:
            entries = entries[key]
        entries[new] = entries.pop(old)

    return change


HOLES = [
    ("en", drop("name"), ["name is missing"]),
    ("en", drop("entities", "sg", "anne"), ["entities.anne is missing"]),
    ("de", drop("entities", "animal", "dog", "acc"), ["dog has no form 'acc'", "{o.acc}"]),
    ("de", drop("relations", "eat", "person"), ["eat has no form 'person'"]),
    ("ru", drop("attributes", "kind", "f"), ["kind has no form 'f'", "{a}"]),
    (
        "en",
        drop("templates", "conclusion", "relation", "negative"),
        ["templates.conclusion.relation.negative is missing"],
    ),
    ("en", drop("classes", "sg", "fish"), ["classes.fish is missing"]),
    ("de", drop("classes", "animal", "fish", "neg"), ["fish has no form 'neg'", "{c.neg}"]),
    ("en", drop("hypernymy", "negative"), ["hypernymy.negative is missing"]),
    ("en", put("hypernymy", "positive", value="{s} is {o}"), ["hypernymy.positive: nothing fills {o}"]),
    ("en", rename("anne", "ane", "entities", "sg"), ["entities.anne is missing", "'ane', did you mean 'anne'?"]),
    ("en", put("templates", "conclusion", "attribute", "positive", value="{be} {x}"), ["nothing fills {x}"]),
    ("en", put("templates", "conclusion", "attribute", "positive", value="{be} {s} {a"), ["brace without its partner"]),
    (
        "de",
        put("templates", "conclusion", "relation", "positive", value="{v} {s.nom} {o.accu}"),
        ["templates.conclusion.relation.positive: unknown form 'accu', did you mean 'acc'?"],
    ),
    ("de", put("templates", "conclusion", "relation", "positive", value="{v} {s.nom} {o}"), ["dog", "{o}", "nom, acc"]),
    ("en", put("frames", "statement", value="it is so."), ["frames.statement must have {clause} once"]),
    ("en", put("attributes", "big", value=False), ["attributes.big is False", "quotes"]),
    ("en", put("attributes", "big", value="kind"), ["big and kind have the same forms"]),
    ("en", put("entities", "pl", value={"anne": "Annes"}), ["anne and anne have the same forms"]),
    ("en", put("relations", value="chases"), ["relations is 'chases', but must be a mapping"]),
    ("en", put("templates", "conclusion", value={"attribute": "{s}"}), ["templates.conclusion.attribute is '{s}'"]),
    ("en", put("direction", value="lttr"), ["'lttr', did you mean 'ltr'?"]),
    ("en", put("rewrites", value={"(": "x"}), ["'(' to 'x' is not a valid substitution"]),
    (
        "en",
        put("variable", "again", value={"sg": "it", "pl": "they"}),
        ["variable.again must have one agreement class"],
    ),
]


@pytest.mark.parametrize(("code", "change", "messages"), HOLES)
def test_lexicon_with_a_hole_is_refused_naming_it(
    tmp_path: Path, code: str, change: Callable[[dict[str, Any]], None], messages: list[str]
) -> None:
    entries = packaged(code)
    change(entries)
    with pytest.raises(ValueError, match=f"{code}\\.yaml") as refusal:
        lexicon(code, written(tmp_path, code, entries))
    assert [message for message in messages if message not in str(refusal.value)] == []


def test_all_holes_are_named_at_once(tmp_path: Path) -> None:
    entries = packaged("ru")
    drop("attributes", "big")(entries)
    drop("attributes", "kind", "f")(entries)
    drop("frames", "and")(entries)
    with pytest.raises(ValueError) as refusal:
        lexicon("ru", written(tmp_path, "ru", entries))
    assert len(str(refusal.value).splitlines()) == 1 + 3


@pytest.mark.parametrize("text", ["", "- a list", "a: [unclosed"])
def test_file_that_is_no_lexicon_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "xx.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"xx\.yaml is"):
        lexicon("xx", tmp_path)


def test_a_new_language_is_one_file(tmp_path: Path) -> None:
    clause = {
        "attribute": {"positive": "{s} é {a}", "negative": "{s} não é {a}"},
        "relation": {"positive": "{s} {v} {o}", "negative": "{s} não {v} {o}"},
    }
    women = ("anne", "erin", "fiona")
    portuguese = {
        "name": "português",
        "english": "Portuguese",
        "family": "Romance",
        "script": "Latn",
        "direction": "ltr",
        "entities": {
            "m": {name: f"o {name}" for name in ENTITIES + MEMBERS if name not in women},
            "f": {name: f"a {name}" for name in women},
        },
        "classes": {"m": {name: f"um {name}o" for name in taxonomy()}},
        "attributes": {name: {"m": f"{name}o", "f": f"{name}a"} for name in concepts().attributes},
        "relations": {name: f"{name}a" for name in concepts().relations},
        "variable": {"first": {"m": "alguém"}, "again": {"m": ""}, "resumed": {"f": "essa pessoa"}},
        "templates": dict.fromkeys(("statement", "condition", "conclusion"), clause),
        "hypernymy": {"positive": "{s} é {c}", "negative": "{s} não é {c}"},
        "frames": {
            "statement": "{clause}.",
            "if": "se {clause}",
            "and": " e {clause}",
            "then": ", então {clause}.",
        },
        "rewrites": {"\\be (?=é)": "e também "},
    }
    language = lexicon("pt", written(tmp_path, "pt", portuguese))
    assert [say(language, text) for text in ("not big erin", "big ?, red ? -> kind ?")] == [
        "A erin não é biga.",
        "Se alguém é bigo e também é redo, então é kindo.",
    ]
