"""The steps of reading a reply to a yes/no question; each is a module.

The judge is `judges/yesno.py`.

From the ground up; each imports only from those above it:

- `punctuation`: the signs that end a sentence, a clause or an answer;
- `lexicon`: the phrases, stems and answer words that the replies of a language are searched for;
- `probes`: what agreeing answers to each of the three questions;
- `reply`: one reply as tokens and events, the phrases found in it;
- `said`: what its clauses say ("I do not agree with it");
- `phrases`: what its phrases say where no clause could be read, and whether they contradict;
- `options`: the options repeated ("yes / no"), and a choice among them;
- `answer_words`: whether a yes or no is the answer, by what stands around it;
- `commitment`: the first of these that answers;
- `marked`, `announced`: answers in a format, or called the answer; both win over the commitment;
- `closing`: how the reply ends, which may correct the commitment;
- `decision`: all of it together, the answer or why there is none;
- `second`: what a small learned reader proposes or doubts;
- `parsers`: other readers, for comparison.

An example, asked whether one agrees: "Some say it is fair. I do not agree with it. So: no." Its
events are the phrases "it is fair", "I do not agree", "so" (a label) and "no" (an answer word). Of
its clauses one says something of the speaker's own, the second sentence: no. It stands before the
word "no", so it is the commitment; nothing is marked, and the end agrees.

Positions: `start` and `end` count characters of the normalised reply, `first` and `last` tokens,
`k` events; `end` and `last` stand behind what they belong to.
"""
