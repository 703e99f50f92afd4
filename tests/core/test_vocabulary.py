"""Words that everything else reads: the answers of a rubric."""

from core.vocabulary import NO_VOTES, VOTES, Answer, Vote


def test_codes_count_up_from_zero_and_each_has_one_key() -> None:
    assert [int(answer) for answer in sorted(Answer)] == list(range(len(Answer)))
    assert all(len(answer.key) == 1 and Answer(int(answer.key)) is answer for answer in Answer)


def test_an_answer_has_words_of_its_own() -> None:
    for words in ([answer.text for answer in Answer], [answer.short for answer in Answer]):
        assert all(words)
        assert len(set(words)) == len(Answer)


def test_an_answer_counts_for_one_thing_and_only_votes_count() -> None:
    assert set(VOTES) | set(NO_VOTES) == set(Answer)
    assert {answer.vote for answer in VOTES} == set(Vote) - {Vote.NONE}
