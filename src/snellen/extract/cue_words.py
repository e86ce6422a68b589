"""The words by which people and models point at, deny or withdraw an answer, in many languages, as patterns over lower-cased text.

Every pattern is linear: alternatives begin differently, repeats are possessive, and contexts are searched in bounded windows.
"""

from __future__ import annotations

import re

from .word_gate import Gated

_W = r"0-9a-z_\u00aa-\u024f\u0370-\u06ff\u0900-\u0dff\u1e00-\u1eff"
"""Letters that join a word. CJK, kana, Hangul and Thai are left out: there a Latin letter stands alone without spaces."""
WORD_BEFORE = rf"(?<![{_W}A-Z])"
WORD_AFTER = rf"(?![{_W}A-Z])"
_END = rf"(?![{_W}])"

_ASCII_ANSWER = (
    "answer|ans|solution|final choice|prediction|verdict|conclusion|correct one|correct|right one|best one|respuesta|"
    "solucion|reponse|antwoord|"
    "antwort|loesung|losung|risposta|resposta|soluzione|cevap|cevabi|yanit|jawabannya|jawaban|odpowiedz|svaret|svar|vastaus|"
    "sagot|jawapan|jibu|dap an"
)
_ASCII_OPTION = (
    "option|choice|selection|pick|guess|letter|alternative|alternativa|statement|response|one left|opcion|letra|"
    "lettre|lettera|buchstabe|opcao|opzione"
)
_ASCII_VERB = (
    "choose|chose|choosing|select|selecting|picking|go with|going with|went with|opt for|opting for|settle on|settling on|"
    "settled on|vote for|vote|"
    "stick with|sticking with|elijo|escojo|je choisis|ich wahle|scelgo|escolho|escolheria|choisirais|memilih|rispondo|respondo|wybieram|"
    "ik kies"
)
_OTHER_OPTION = "opción|opção|вариант|буква|选项|選項|選択肢|보기|번호|الخيار|विकल्प|ข้อ"
_OTHER_VERB = "ich wähle|chọn|elegiría|выбираю|选择|選擇|选|選|選び"
_OTHER_ANSWER = (
    "solución|réponse|lösung|cevabı|yanıt|odpowiedź|odpověď|răspunsul|răspuns|đáp án|câu trả lời|ответ|відповідь|отговор|απάντηση|"
    "答案|正解|答え|回答|解答|正确的是|정답|답변|답|الإجابة|الاجابة|الجواب|إجابة|جواب|उत्तर|जवाब|উত্তর|பதில்|คำตอบ|התשובה|תשובה|پاسخ"
)
CUES = {
    word: kind
    for kind, words in (
        ("answer", f"{_ASCII_ANSWER}|{_OTHER_ANSWER}"),
        ("option", f"{_ASCII_OPTION}|{_OTHER_OPTION}"),
        ("verb", f"{_ASCII_VERB}|{_OTHER_VERB}"),
    )
    for word in words.split("|")
}
"""Words after which an answer stands, and of which kind they are."""
_CUES_ENGLISH_TEXT = (
    "answer|correct|choice|option|choose|select|pick|going with|go with|best one|right one|solution|letter|ans|guess"
)
CUES_ENGLISH = tuple(_CUES_ENGLISH_TEXT.split("|"))
"""Looked for first."""
CUES_ASCII = tuple(word for word in CUES if word.isascii() and word not in CUES_ENGLISH)
CUES_ALL = tuple(CUES)

MARK_NOUNS = (
    "option|choice|answer|letter|ans|opción|opcion|opção|opcao|opzione|alternativa|letra|lettre|lettera|réponse|respuesta|resposta|risposta|"
    "antwort|antwoord|вариант|ответ|选项|選項|选|答案"
)
"""What may stand before a mark when both are the whole reply: `Option B`."""

_LINK_WORDS = (
    "is|are|was|were|be|been|on|er|would|should|must|will|has|have|can|could|may|might|to|this|that|the|my|our|your|its|"
    "it's|it|that's|question|problem|"
    "option|choice|letter|answer|number|statement|alternative|indeed|therefore|thus|then|clearly|definitely|certainly|"
    "most|likely|probably|"
    "simply|just|actually|in fact|here|following|as follows|given|by|for|of|left|remaining|image|picture|final|"
    "correct|right|best|one|either|both|"
    "seems|appears|only|i (?:believe|think|choose|pick|select)|going with|go with|with|equals|labell?ed|marked|"
    "es|est|ist|é|è|la|le|el|die|der|das|den|il|lo|opci[oó]n|letra|lettre|lettera|buchstabe|alternativa|op[cç][aã]o|opzione|"
    "correct[ao]|correcte|corret[ao]|corrett[ao]|richtige?|juste|bonne|sera|serait|sería|wäre|lautet|lauten|je|"
    "yang|benar|tepat|adalah|to|juiste|là|đúng|chính xác|jest|är|este|"
    "это|является|corect|ni|вариант|буква|под|буквой|правильный|верный|هي|هو|الصحيحة|الصحيح|الخيار|رقم|حرف|सही|विकल्प|है|คือ|ข้อ|היא|"
    "הוא|הנכונה|گزینه|است|doğru"
)
_LINK_CJK = r"是|为|為|应该|应当|应|该|选择|选项|選項|选|選|即|项|就|の|は|が|記号|番号|은|는|이|가|보기|번|选出|l'"
LINK = re.compile(
    rf"(?>[\s*_`\"'(\[{{$)\]:=<>\\~|#「『【《“”（：〈—–→⇒-]++|(?:{_LINK_WORDS}){_END}|a(?=\s(?:letra|op[cç][aã]o|alternativa|[b-z]{_END}))|(?:{_LINK_CJK}))*+"
)
BINDER = re.compile(
    rf"[:=→⇒]|->|(?<![{_W}])(?:is|are|was|be|es|est|ist|[eé]|è|jest|adalah|là|hi|هي|هو|это|คือ|היא)(?![{_W}])|是|为|"
    rf"為|は|が|은|는|—|–| - "
)

NOT_AFTER = re.compile(
    rf"(?:not|n't|never|neither|no longer|non|nicht|pas|no|n[aã]o|не|nie|inte|ikke|ليس|ليست|नहीं)(?![{_W}])|不|非|並|并非"
)
"""What stands after a link and denies what follows it."""

NEGATION = re.compile(
    rf"(?<![{_W}])(?:not|no|non|nu|ne|nie|nicht|kein\w{{0,2}}|não|nao|pas|ei|ej|inte|ikke|niet|değil|bukan|không|si|не|нет|لا|ليس|ليست|नहीं|nem|nije)(?![{_W}])"
)
"""Words that deny, in the languages of the cues."""

DOUBT = Gated(
    rf"(?<![{_W}])(?:(?:wrong|incorrect|false|worst|other|another|least|poor|bad|falsche|incorrecta|неправильный|"
    rf"неверный|错误|不正确|错误的|誤った)[\s的]*(?:answer |final )?"
    r"|(?:if|whether|suppose|assuming|unless|why|were) (?:that )?(?:the |my |your |it |its )?(?:correct |right |"
    r"best |final |real |true )*"
    r"|(?:don't|do not) (?:think|believe) (?:that )?(?:the |my )?(?:correct |right |best |final )*"
    r"|(?:isn't|is not|not|wasn't|no|never) (?:the |a |my |an )?(?:correct |right |best |final |real |true )*"
    r"|(?:first|initial|original|previous|earlier|early|old|naive|wrong) (?:answer |choice |guess |thought )?)\Z",
    "wrong|incorrect|false|worst|other|least|poor|bad |falsche|if |whether|suppose|assuming|unless|why|were |not|"
    "n't|no |never|first|initial|original|previous|earl|old |naive|"
    "неправильный|неверный|错误|不正确|誤った",
)
"""What stands directly before a cue and takes its force."""
DOUBT_CLAUSE = Gated(
    rf"(?<![{_W}])(?:initially|at first|originally|previously|if (?:the|it) |first thought|first,? i|i first|i thought|i'd have|"
    r"had thought|would have|"
    r"(?:some|many|most|other|several) (?:people|readers|students|viewers|models|users|might|may|would|could)|others (?:say|"
    r"think|might|may|would|chose|answer)|one might|you might|students|people|"
    r"tempt\w{0,5}|mistak\w{0,6}|distract\w{0,6}|for example|e\.g\.|for instance|hypothetical\w{0,2}|au début|al principio|"
    r"zuerst dachte|一开始|起初|最初)",
    "initially|at first|originally|previously|if |first thought|first i|first, i|i first|i thought|i'd have|had thought|would have|"
    "some |many |"
    "most |other|several |one might|you might|students|people|tempt|"
    "mistak|distract|for example|e.g.|for instance|hypothetical|au début|al principio|zuerst dachte|一开始|起初|最初",
)
"""Anywhere in the clause before a cue: the speaker reports a thought that is not the answer."""
VERB_SUBJECT = re.compile(
    rf"(?:(?<![{_W}])(?:i|we|i'd|i'll|i'm|we'd|we'll|would|will|shall|must|should|let's|let me|to|therefore|so|thus|"
    r"hence|and|then|finally|have to|am|are|could|ll|je|ich|ik|yo|eu|io|saya)|[.!?,:;\n—–-]|\A)\s*(?:therefore |thus |then |to |now |"
    r"finally |"
    rf"definitely |rather )*\Z"
)
"""Who may be the subject of `choose B` for it to be an answer: the speaker, or nobody."""
VERB_DENIED = re.compile(
    rf"(?:(?<![{_W}])(?:not|never|cannot|nor|neither|no one|nobody)|n't)(?:\s+\w{{1,12}}){{0,2}}\s*\Z"
)

CORRECTION = Gated(
    rf"(?<![{_W}])(?:wait|hold on|actually|correction|(?:up)?on second thou?ghts?|(?:up)?on (?:further )?reflection|(?:up)?on closer|"
    r"scratch that|let me (?:re|"
    rf"double|correct|fix|look again)\w{{0,10}}|my mistake|my bad|"
    r"i made (?:a|an) (?:mistake|error)|i was wrong|i take (?:that|it) back|oops|just kidding|i meant|i misread|sorry,|no,|nope|rather,|"
    r"hmm|espera|"
    r"perd[oó]n|attendez|moment mal|warte|подождите|нет,)"
    r"|等等|(?<![^。，,.!?\s…;])不对|更正|等一下|いや|待って|訂正|아니|잠깐",
    "wait|hold on|actually|correction|on second|reflection|on closer|scratch that|let me re|let me double|let me correct|"
    "let me fix|let me look again|my mistake|my bad|i made a|i was wrong|i take |oops|just kidding|i meant|i misread|sorry,|no,|nope|"
    "rather,|hmm|"
    "espera|perd|attendez|moment mal|warte|подождите|нет,|等等|不对|更正|等一下|いや|待って|訂正|아니|잠깐",
)
WITHDRAWN = re.compile(
    rf"(?<![{_W}])(?:oops|scratch that|i meant|i misread|i take (?:that|it) back|wrong|incorrect|mistake|error|not right|"
    rf"not correct|false)(?![{_W}])|不对|错"
)

REFUSAL = Gated(
    rf"(?<![{_W}])(?:can(?:no|')t|cannot|could not|couldn't|can not|unable to|not able to|impossible to|not possible to|"
    rf"hard to|difficult to|won't|will not)\s"
    r"(?:\w{1,12}\s){0,3}?(?:determin|answer|tell|see|view|provide|identif|help|assist|give|say|choose|select|pick|"
    r"decide|discern|process|access|make out|read|verify|confirm|know|comply|be (?:determin|answer|given|identif|"
    r"seen|made|told|read|decid|chosen|said|established|concluded|known))\w{0,4}"
    rf"|(?<![{_W}])(?:i'm sorry|i am sorry|sorry, (?:but )?i|i apologi[sz]e|i don't know|i do not know|i'm not sure|"
    rf"i am not sure|no idea|as an ai|i must decline|i decline|i refuse|against (?:my|the) (?:policy|guidelines))"
    rf"|(?<![{_W}])(?:not enough|insufficient|lack of|no) (?:\w{{1,12}} )?(?:information|context|evidence|detail|data)"
    rf"|(?<![{_W}])(?:no image|(?:image|picture|photo) (?:is|was) (?:not|too|missing|un)|don't see (?:an|any|the) image|"
    rf"didn't receive|not provided)"
    r"|无法|不能确定|無法|抱歉|对不起|看不清|不知道|申し訳|わかりません|分かりません|できません|"
    r"죄송|알 수 없|lo siento|no puedo|je ne peux pas|désolé|"
    r"tut mir leid|"
    r"kann (?:ich )?nicht|не могу|извините|não posso|desculpe|mi dispiace|non posso|عذر|لا أستطيع|لا يمكن|क्षमा|"
    r"नहीं (?:कर|बता)",
    "can't|cannot|could not|couldn't|can not|unable to|not able to|impossible to|not possible to|hard to|difficult to|"
    "won't|will not|sorry|apologi|don't know|do not know|"
    "not sure|no idea|as an ai|decline|i refuse|against |not enough|insufficient|lack of| information|no evidence|"
    "no context|no detail|no data|no image|image is|image was|picture is|picture was|photo is|photo was|don't see|"
    "didn't receive|not provided|lo siento|no puedo|je ne peux pas|tut mir leid|kann nicht|kann ich nicht|desculpe|"
    "mi dispiace|non posso|无法|不能确定|無法|抱歉|对不起|看不清|不知道|申し訳|わかりません|"
    "分かりません|できません|죄송|알 수 없|désolé|не могу|извините|não posso|عذر|لا أستطيع|لا يمكن|क्षमा|नहीं",
)
UNDECIDABLE = re.compile(
    r"(?:can(?:no|')t|cannot|can not|not possible|impossible|unable)[\w\s]{1,20}(?:determin|tell|know|decid|be known|conclude|infer)"
    r"|(?:not enough|insufficient|lack of) (?:\w{1,12} )?(?:information|context|evidence|data)|无法确定|不能确定|undetermin|"
    r"not sure|unclear|unknown"
)
"""The refusals that say the question has no answer: they choose an option such as `Cannot be determined` where one is offered."""
STILL = re.compile(
    rf"(?<![{_W}])(?:but|however|though|if i (?:had|have|must|were)|guess|nevertheless|nonetheless|still|my best|"
    rf"但|不过|しかし|하지만|pero|mais|aber|но)"
)

INTRODUCES = (
    *(
        "option",
        "choice",
        "each",
        "analy",
        "consider",
        "let me",
        "let's",
        "let us",
        "following",
        "evaluat",
        "one by one",
    ),
    *("选项", "分析"),
)
"""A line with one of these speaks of the options: what follows lists them and does not choose."""

HARNESS = re.compile(
    r"\s*(?:error(?: code| occurred)?\s?[:\-]?\s?(?:\d{3}|code|\{)|error:|\[error|failed to (?:obtain|get|call|fetch|"
    r"connect|generate|parse|load)|api (?:error|call failed|request failed)|"
    r"an error occurred|exception(?::| in| occurred)|traceback \(most|http ?(?:error|status|\d{3})|http/1|status[ _]code|"
    r"request (?:timed out|failed|entity)|"
    r"connection (?:error|refused|reset|aborted|timed)|read timed out|timeout(?:error)?\s?(?::|$)|rate ?limit|too many requests|"
    r"internal server error|bad gateway|"
    r"service unavailable|gateway time-?out|cuda (?:out of memory|error)|out of memory|torch\.|valueerror|runtimeerror|"
    r"keyerror|typeerror|badrequesterror|"
    r"openai\.|anthropic\.|\{\s?[\"'](?:error|detail|status|status_code)[\"']|<html|<!doctype|input data may contain inappropriate|"
    r"can not answer because of|"
    r"null\s*$|none\s*$|nan\s*$|n/a$|\[(?:failed|timeout|none|null)\])"
)
