"""The bibliography: what networks, measures and studies name by a key, and how it is printed.

>>> REFERENCES["hyland2017"].short
'Hyland and Rätsch 2017'
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from mnemoscope.core.errors import UserError, nearest

__all__ = ["REFERENCES", "Reference", "reference"]

_VENUE = {"article": "journal", "inproceedings": "booktitle", "techreport": "institution", "misc": "howpublished"}
_ACCENTS = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u030c": "v", "\u0327": "c"}
_SPECIAL = {"&", "%", "$", "#", "_"}


@dataclass(frozen=True)
class Reference:
    """One published work.

    Attributes
    ----------
    key
        By which it is named: the first author's family name and the year.
    kind
        Of BibTeX entry: ``article``, ``inproceedings``, ``techreport`` or ``misc``.
    authors
        Each as ``"Family, Given"``.
    title
        Braces keep the capitals of what they enclose, as in BibTeX.
    year
        Of publication.
    venue
        The journal, the proceedings or the institution.
    series, volume, number, pages, doi, arxiv
        Where they exist.
    """

    key: str
    kind: str
    authors: tuple[str, ...]
    title: str
    year: int
    venue: str = ""
    series: str = ""
    volume: str = ""
    number: str = ""
    pages: str = ""
    doi: str = ""
    arxiv: str = ""

    @property
    def short(self) -> str:
        """Authors and year: ``Kerg et al. 2019``."""
        families = [author.partition(",")[0] for author in self.authors]
        names = f"{families[0]} et al." if len(families) > 2 else " and ".join(families)
        return f"{names} {self.year}"

    @property
    def text(self) -> str:
        """The reference as a sentence."""
        *others, last = [_given_first(author) for author in self.authors]
        authors = f"{', '.join(others)} and {last}" if others else last
        where = self.venue
        if self.volume:
            where += f" {self.volume}" + (f"({self.number})" if self.number else "")
        where += f", pp. {self.pages.replace('--', '-')}" if self.pages else ""
        link = f"doi:{self.doi}" if self.doi else f"arXiv:{self.arxiv}" if self.arxiv else ""
        title = self.title.translate({ord("{"): None, ord("}"): None})
        return ". ".join(part for part in (authors, title, where, str(self.year), link) if part) + "."

    def bibtex(self) -> str:
        """Return the BibTeX entry, in ASCII."""
        # Links are read verbatim by BibTeX styles: escaping would break them.
        fields = {
            "author": _latex(" and ".join(self.authors)),
            "title": _latex(self.title),
            _VENUE[self.kind]: _latex(self.venue),
            "series": _latex(self.series),
            "volume": self.volume,
            "number": self.number,
            "pages": self.pages,
            "year": str(self.year),
            "doi": self.doi,
            "eprint": self.arxiv,
            "archiveprefix": "arXiv" if self.arxiv else "",
        }
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


def reference(key: str) -> Reference:
    """Return the reference filed under `key`, or raise with the nearest key there is."""
    if key not in REFERENCES:
        near = nearest(key, REFERENCES)
        raise UserError(f"there is no reference {key!r}" + (f"; did you mean {near!r}?" if near else ""))
    return REFERENCES[key]


def _given_first(author: str) -> str:
    family, _, given = author.partition(", ")
    return f"{given} {family}" if given else family


def _latex(text: str) -> str:
    return "".join(_latex_letter(letter) for letter in unicodedata.normalize("NFC", text))


def _latex_letter(letter: str) -> str:
    if letter.isascii():
        return f"\\{letter}" if letter in _SPECIAL else letter
    parts = unicodedata.normalize("NFD", letter)
    base, mark = parts[0], parts[1:]
    if mark not in _ACCENTS:
        raise ValueError(f"no BibTeX form is known for {letter!r}")
    accent = _ACCENTS[mark]
    inner = f"\\{base}" if base in "ij" else base  # dotless, so that the accent takes the place of the dot
    return f"{{\\{accent}{{{inner}}}}}"


_PMLR = "Proceedings of Machine Learning Research"
_ICML = "Proceedings of the {} International Conference on Machine Learning"
_NEURIPS = "Advances in Neural Information Processing Systems"
_ICLR = "International Conference on Learning Representations"
_AAAI = "Proceedings of the AAAI Conference on Artificial Intelligence"

_ENTRIES = (
    Reference(
        "alkin2024",
        "misc",
        ("Alkin, Emil",),
        "Expressive Power of Tensor-Train Networks With Equal {TT}-cores",
        2024,
        "Master's thesis, Skolkovo Institute of Science and Technology",
    ),
    Reference(
        "arjovsky2016",
        "inproceedings",
        ("Arjovsky, Martin", "Shah, Amar", "Bengio, Yoshua"),
        "Unitary Evolution Recurrent Neural Networks",
        2016,
        _ICML.format("33rd"),
        series=_PMLR,
        volume="48",
        pages="1120--1128",
        arxiv="1511.06464",
    ),
    Reference(
        "arora2024",
        "inproceedings",
        (
            "Arora, Simran",
            "Eyuboglu, Sabri",
            "Timalsina, Aman",
            "Johnson, Isys",
            "Poli, Michael",
            "Zou, James",
            "Rudra, Atri",
            "Ré, Christopher",
        ),
        "Zoology: Measuring and Improving Recall in Efficient Language Models",
        2024,
        _ICLR,
        arxiv="2312.04927",
    ),
    Reference(
        "benettin1980",
        "article",
        ("Benettin, Giancarlo", "Galgani, Luigi", "Giorgilli, Antonio", "Strelcyn, Jean-Marie"),
        "{Lyapunov} Characteristic Exponents for smooth dynamical systems and for {Hamiltonian} systems; a method for "
        "computing all of them. {Part} 2: Numerical application",
        1980,
        "Meccanica",
        volume="15",
        pages="21--30",
        doi="10.1007/BF02128237",
    ),
    Reference(
        "cho2014",
        "inproceedings",
        (
            "Cho, Kyunghyun",
            "van Merriënboer, Bart",
            "Gulcehre, Caglar",
            "Bahdanau, Dzmitry",
            "Bougares, Fethi",
            "Schwenk, Holger",
            "Bengio, Yoshua",
        ),
        "Learning Phrase Representations using {RNN} Encoder-Decoder for Statistical Machine Translation",
        2014,
        "Proceedings of the 2014 Conference on Empirical Methods in Natural Language Processing",
        pages="1724--1734",
        doi="10.3115/v1/D14-1179",
        arxiv="1406.1078",
    ),
    Reference(
        "cohen2016",
        "inproceedings",
        ("Cohen, Nadav", "Sharir, Or", "Shashua, Amnon"),
        "On the Expressive Power of Deep Learning: A Tensor Analysis",
        2016,
        "29th Annual Conference on Learning Theory",
        series=_PMLR,
        volume="49",
        pages="698--728",
        arxiv="1509.05009",
    ),
    Reference(
        "dambre2012",
        "article",
        ("Dambre, Joni", "Verstraeten, David", "Schrauwen, Benjamin", "Massar, Serge"),
        "Information Processing Capacity of Dynamical Systems",
        2012,
        "Scientific Reports",
        volume="2",
        number="514",
        doi="10.1038/srep00514",
    ),
    Reference(
        "elman1990",
        "article",
        ("Elman, Jeffrey L.",),
        "Finding Structure in Time",
        1990,
        "Cognitive Science",
        volume="14",
        number="2",
        pages="179--211",
        doi="10.1207/s15516709cog1402_1",
    ),
    Reference(
        "ganguli2008",
        "article",
        ("Ganguli, Surya", "Huh, Dongsung", "Sompolinsky, Haim"),
        "Memory traces in dynamical systems",
        2008,
        "Proceedings of the National Academy of Sciences",
        volume="105",
        number="48",
        pages="18970--18975",
        doi="10.1073/pnas.0804451105",
    ),
    Reference(
        "giles1992",
        "article",
        ("Giles, C. Lee", "Miller, Clifford B.", "Chen, Dong", "Chen, Hsing-Hen", "Sun, Guo-Zheng", "Lee, Yee-Chun"),
        "Learning and Extracting Finite State Automata with Second-Order Recurrent Neural Networks",
        1992,
        "Neural Computation",
        volume="4",
        number="3",
        pages="393--405",
        doi="10.1162/neco.1992.4.3.393",
    ),
    Reference(
        "graves2014",
        "misc",
        ("Graves, Alex", "Wayne, Greg", "Danihelka, Ivo"),
        "Neural {Turing} Machines",
        2014,
        arxiv="1410.5401",
    ),
    Reference(
        "gu2024",
        "inproceedings",
        ("Gu, Albert", "Dao, Tri"),
        "Mamba: Linear-Time Sequence Modeling with Selective State Spaces",
        2024,
        "First Conference on Language Modeling",
        arxiv="2312.00752",
    ),
    Reference(
        "helfrich2018",
        "inproceedings",
        ("Helfrich, Kyle", "Willmott, Devin", "Ye, Qiang"),
        "Orthogonal Recurrent Neural Networks with Scaled {Cayley} Transform",
        2018,
        _ICML.format("35th"),
        series=_PMLR,
        volume="80",
        pages="1969--1978",
        arxiv="1707.09520",
    ),
    Reference(
        "henaff2016",
        "inproceedings",
        ("Henaff, Mikael", "Szlam, Arthur", "LeCun, Yann"),
        "Recurrent Orthogonal Networks and Long-Memory Tasks",
        2016,
        _ICML.format("33rd"),
        series=_PMLR,
        volume="48",
        pages="2034--2042",
        arxiv="1602.06662",
    ),
    Reference(
        "henrici1962",
        "article",
        ("Henrici, Peter",),
        "Bounds for iterates, inverses, spectral variation and fields of values of non-normal matrices",
        1962,
        "Numerische Mathematik",
        volume="4",
        pages="24--40",
    ),
    Reference(
        "hewitt2020",
        "inproceedings",
        (
            "Hewitt, John",
            "Hahn, Michael",
            "Ganguli, Surya",
            "Liang, Percy",
            "Manning, Christopher D.",
        ),
        "{RNN}s can generate bounded hierarchical languages with optimal memory",
        2020,
        "Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing",
        pages="1978--2010",
        arxiv="2010.07515",
    ),
    Reference(
        "hochreiter1997",
        "article",
        ("Hochreiter, Sepp", "Schmidhuber, Jürgen"),
        "Long Short-Term Memory",
        1997,
        "Neural Computation",
        volume="9",
        number="8",
        pages="1735--1780",
        doi="10.1162/neco.1997.9.8.1735",
    ),
    Reference(
        "hyland2017",
        "inproceedings",
        ("Hyland, Stephanie L.", "Rätsch, Gunnar"),
        "Learning Unitary Operators with Help From u(n)",
        2017,
        _AAAI,
        volume="31",
        number="1",
        pages="2050--2058",
        doi="10.1609/aaai.v31i1.10928",
        arxiv="1607.04903",
    ),
    Reference(
        "jaeger2001",
        "techreport",
        ("Jaeger, Herbert",),
        "Short term memory in echo state networks",
        2001,
        "GMD, German National Research Center for Information Technology",
        number="152",
    ),
    Reference(
        "jaeger2007",
        "article",
        ("Jaeger, Herbert", "Lukoševičius, Mantas", "Popovici, Dan", "Siewert, Udo"),
        "Optimization and applications of echo state networks with leaky-integrator neurons",
        2007,
        "Neural Networks",
        volume="20",
        number="3",
        pages="335--352",
        doi="10.1016/j.neunet.2007.04.016",
    ),
    Reference(
        "jing2017",
        "inproceedings",
        (
            "Jing, Li",
            "Shen, Yichen",
            "Dubcek, Tena",
            "Peurifoy, John",
            "Skirlo, Scott",
            "LeCun, Yann",
            "Tegmark, Max",
            "Soljačić, Marin",
        ),
        "Tunable Efficient Unitary Neural Networks ({EUNN}) and their application to {RNN}s",
        2017,
        _ICML.format("34th"),
        series=_PMLR,
        volume="70",
        pages="1733--1741",
        arxiv="1612.05231",
    ),
    Reference(
        "jing2019",
        "article",
        (
            "Jing, Li",
            "Gulcehre, Caglar",
            "Peurifoy, John",
            "Shen, Yichen",
            "Tegmark, Max",
            "Soljačić, Marin",
            "Bengio, Yoshua",
        ),
        "Gated Orthogonal Recurrent Units: On Learning to Forget",
        2019,
        "Neural Computation",
        volume="31",
        number="4",
        pages="765--783",
        doi="10.1162/neco_a_01174",
        arxiv="1706.02761",
    ),
    Reference(
        "kanuparthi2019",
        "inproceedings",
        (
            "Kanuparthi, Bhargav",
            "Arpit, Devansh",
            "Kerg, Giancarlo",
            "Ke, Nan Rosemary",
            "Mitliagkas, Ioannis",
            "Bengio, Yoshua",
        ),
        "h-detach: Modifying the {LSTM} Gradient Towards Better Optimization",
        2019,
        _ICLR,
        arxiv="1810.03023",
    ),
    Reference(
        "karpathy2015",
        "misc",
        ("Karpathy, Andrej",),
        "The Unreasonable Effectiveness of Recurrent Neural Networks",
        2015,
        "Blog post, with the text at github.com/karpathy/char-rnn",
    ),
    Reference(
        "kerg2019",
        "inproceedings",
        (
            "Kerg, Giancarlo",
            "Goyette, Kyle",
            "Puelma Touzel, Maximilian",
            "Gidel, Gauthier",
            "Vorontsov, Eugene",
            "Bengio, Yoshua",
            "Lajoie, Guillaume",
        ),
        "Non-normal Recurrent Neural Network ({nnRNN}): learning long time dependencies while improving expressivity "
        "with transient dynamics",
        2019,
        _NEURIPS,
        volume="32",
        arxiv="1905.12080",
    ),
    Reference(
        "kerg2020",
        "inproceedings",
        (
            "Kerg, Giancarlo",
            "Kanuparthi, Bhargav",
            "Goyal, Anirudh",
            "Goyette, Kyle",
            "Bengio, Yoshua",
            "Lajoie, Guillaume",
        ),
        "Untangling tradeoffs between recurrence and self-attention in neural networks",
        2020,
        _NEURIPS,
        volume="33",
        arxiv="2006.09471",
    ),
    Reference(
        "kerg2022",
        "misc",
        (
            "Kerg, Giancarlo",
            "Mittal, Sarthak",
            "Rolnick, David",
            "Bengio, Yoshua",
            "Richards, Blake",
            "Lajoie, Guillaume",
        ),
        "On Neural Architecture Inductive Biases for Relational Tasks",
        2022,
        arxiv="2206.05056",
    ),
    Reference(
        "khrulkov2018",
        "inproceedings",
        ("Khrulkov, Valentin", "Novikov, Alexander", "Oseledets, Ivan"),
        "Expressive power of recurrent neural networks",
        2018,
        _ICLR,
        arxiv="1711.00811",
    ),
    Reference(
        "le2015",
        "misc",
        ("Le, Quoc V.", "Jaitly, Navdeep", "Hinton, Geoffrey E."),
        "A Simple Way to Initialize Recurrent Networks of Rectified Linear Units",
        2015,
        arxiv="1504.00941",
    ),
    Reference(
        "lecun1998",
        "article",
        ("LeCun, Yann", "Bottou, Léon", "Bengio, Yoshua", "Haffner, Patrick"),
        "Gradient-based learning applied to document recognition",
        1998,
        "Proceedings of the IEEE",
        volume="86",
        number="11",
        pages="2278--2324",
        doi="10.1109/5.726791",
    ),
    Reference(
        "levine2017",
        "misc",
        ("Levine, Yoav", "Sharir, Or", "Ziv, Alon", "Shashua, Amnon"),
        "On the Long-Term Memory of Deep Recurrent Networks",
        2017,
        arxiv="1710.09431",
    ),
    Reference(
        "lezcano2019",
        "inproceedings",
        ("Lezcano-Casado, Mario", "Martínez-Rubio, David"),
        "Cheap Orthogonal Constraints in Neural Networks: A Simple Parametrization of the Orthogonal and Unitary Group",
        2019,
        _ICML.format("36th"),
        series=_PMLR,
        volume="97",
        pages="3794--3803",
        arxiv="1901.08428",
    ),
    Reference(
        "lezcano2019dtriv",
        "inproceedings",
        ("Lezcano-Casado, Mario",),
        "Trivializations for Gradient-Based Optimization on Manifolds",
        2019,
        _NEURIPS,
        volume="32",
        arxiv="1909.09501",
    ),
    Reference(
        "liu2023",
        "inproceedings",
        ("Liu, Bingbin", "Ash, Jordan T.", "Goel, Surbhi", "Krishnamurthy, Akshay", "Zhang, Cyril"),
        "Transformers Learn Shortcuts to Automata",
        2023,
        _ICLR,
        arxiv="2210.10749",
    ),
    Reference(
        "lizaire2024",
        "inproceedings",
        ("Lizaire, Maude", "Rizvi-Martel, Michael", "Gamal Abdel Hameed, Marawan", "Rabusseau, Guillaume"),
        "A Tensor Decomposition Perspective on Second-order {RNN}s",
        2024,
        _ICML.format("41st"),
        series=_PMLR,
        volume="235",
        arxiv="2406.05045",
    ),
    Reference(
        "lizaire2026",
        "misc",
        ("Lizaire, Maude", "Rizvi-Martel, Michael", "Dupuis, Éric", "Rabusseau, Guillaume"),
        "On the Role of Depth in the Expressivity of {RNN}s",
        2026,
        arxiv="2604.02201",
    ),
    Reference(
        "maduranga2019",
        "inproceedings",
        ("Maduranga, Kehelwala D. G.", "Helfrich, Kyle E.", "Ye, Qiang"),
        "Complex Unitary Recurrent Neural Networks Using Scaled {Cayley} Transform",
        2019,
        _AAAI,
        volume="33",
        number="1",
        pages="4528--4535",
        doi="10.1609/aaai.v33i01.33014528",
        arxiv="1811.04142",
    ),
    Reference(
        "marcus1993",
        "article",
        ("Marcus, Mitchell P.", "Santorini, Beatrice", "Marcinkiewicz, Mary Ann"),
        "Building a Large Annotated Corpus of {English}: The {Penn Treebank}",
        1993,
        "Computational Linguistics",
        volume="19",
        number="2",
        pages="313--330",
    ),
    Reference(
        "merrill2024",
        "inproceedings",
        ("Merrill, William", "Petty, Jackson", "Sabharwal, Ashish"),
        "The Illusion of State in State-Space Models",
        2024,
        _ICML.format("41st"),
        series=_PMLR,
        volume="235",
        arxiv="2404.08819",
    ),
    Reference(
        "mhammedi2017",
        "inproceedings",
        ("Mhammedi, Zakaria", "Hellicar, Andrew", "Rahman, Ashfaqur", "Bailey, James"),
        "Efficient Orthogonal Parametrisation of Recurrent Neural Networks Using {Householder} Reflections",
        2017,
        _ICML.format("34th"),
        series=_PMLR,
        volume="70",
        pages="2401--2409",
        arxiv="1612.00188",
    ),
    Reference(
        "mikolov2012",
        "misc",
        (
            "Mikolov, Tomáš",
            "Sutskever, Ilya",
            "Deoras, Anoop",
            "Le, Hai-Son",
            "Kombrink, Stefan",
            "Černocký, Jan",
        ),
        "Subword Language Modeling with Neural Networks",
        2012,
        "Preprint, Brno University of Technology",
    ),
    Reference(
        "mitchell2020",
        "article",
        ("Mitchell, Tim",),
        "Computing the {Kreiss} Constant of a Matrix",
        2020,
        "SIAM Journal on Matrix Analysis and Applications",
        volume="41",
        number="4",
        pages="1944--1975",
        arxiv="1907.06537",
    ),
    Reference(
        "munkhdalai2019",
        "inproceedings",
        ("Munkhdalai, Tsendsuren", "Sordoni, Alessandro", "Wang, Tong", "Trischler, Adam"),
        "Metalearned Neural Memory",
        2019,
        _NEURIPS,
        volume="32",
        arxiv="1907.09720",
    ),
    Reference(
        "oseledets2011",
        "article",
        ("Oseledets, Ivan V.",),
        "Tensor-Train Decomposition",
        2011,
        "SIAM Journal on Scientific Computing",
        volume="33",
        number="5",
        pages="2295--2317",
        doi="10.1137/090752286",
    ),
    Reference(
        "pascanu2013",
        "inproceedings",
        ("Pascanu, Razvan", "Mikolov, Tomas", "Bengio, Yoshua"),
        "On the difficulty of training recurrent neural networks",
        2013,
        _ICML.format("30th"),
        series=_PMLR,
        volume="28",
        number="3",
        pages="1310--1318",
        arxiv="1211.5063",
    ),
    Reference(
        "rabusseau2019",
        "inproceedings",
        ("Rabusseau, Guillaume", "Li, Tianyu", "Precup, Doina"),
        "Connecting Weighted Automata and Recurrent Neural Networks through Spectral Learning",
        2019,
        "Proceedings of the 22nd International Conference on Artificial Intelligence and Statistics",
        series=_PMLR,
        volume="89",
        pages="1630--1639",
        arxiv="1807.01406",
    ),
    Reference(
        "renanse2021",
        "misc",
        ("Renanse, Animesh", "Sharma, Alok", "Chandra, Rohitash"),
        "Memory Capacity of Recurrent Neural Networks with Matrix Representation",
        2021,
        arxiv="2104.07454",
    ),
    Reference(
        "santoro2017",
        "inproceedings",
        (
            "Santoro, Adam",
            "Raposo, David",
            "Barrett, David G. T.",
            "Malinowski, Mateusz",
            "Pascanu, Razvan",
            "Battaglia, Peter",
            "Lillicrap, Timothy",
        ),
        "A simple neural network module for relational reasoning",
        2017,
        _NEURIPS,
        volume="30",
        arxiv="1706.01427",
    ),
    Reference(
        "saxe2014",
        "inproceedings",
        ("Saxe, Andrew M.", "McClelland, James L.", "Ganguli, Surya"),
        "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks",
        2014,
        _ICLR,
        arxiv="1312.6120",
    ),
    Reference(
        "shanahan2020",
        "inproceedings",
        (
            "Shanahan, Murray",
            "Nikiforou, Kyriacos",
            "Creswell, Antonia",
            "Kaplanis, Christos",
            "Barrett, David",
            "Garnelo, Marta",
        ),
        "An Explicitly Relational Neural Network Architecture",
        2020,
        _ICML.format("37th"),
        series=_PMLR,
        volume="119",
        arxiv="1905.10307",
    ),
    Reference(
        "spijker1991",
        "article",
        ("Spijker, Marc N.",),
        "On a conjecture by {LeVeque} and {Trefethen} related to the {Kreiss} matrix theorem",
        1991,
        "BIT Numerical Mathematics",
        volume="31",
        number="3",
        pages="551--555",
    ),
    Reference(
        "sutskever2011",
        "inproceedings",
        ("Sutskever, Ilya", "Martens, James", "Hinton, Geoffrey E."),
        "Generating Text with Recurrent Neural Networks",
        2011,
        _ICML.format("28th"),
        pages="1017--1024",
    ),
    Reference(
        "tagare2011",
        "techreport",
        ("Tagare, Hemant D.",),
        "Notes on Optimization on {Stiefel} Manifolds",
        2011,
        "Yale University",
    ),
    Reference(
        "trefethen2005",
        "misc",
        ("Trefethen, Lloyd N.", "Embree, Mark"),
        "Spectra and Pseudospectra: The Behavior of Nonnormal Matrices and Operators",
        2005,
        "Princeton University Press",
    ),
    Reference(
        "vaswani2017",
        "inproceedings",
        (
            "Vaswani, Ashish",
            "Shazeer, Noam",
            "Parmar, Niki",
            "Uszkoreit, Jakob",
            "Jones, Llion",
            "Gomez, Aidan N.",
            "Kaiser, Lukasz",
            "Polosukhin, Illia",
        ),
        "Attention is All you Need",
        2017,
        _NEURIPS,
        volume="30",
        arxiv="1706.03762",
    ),
    Reference(
        "vorontsov2017",
        "inproceedings",
        ("Vorontsov, Eugene", "Trabelsi, Chiheb", "Kadoury, Samuel", "Pal, Chris"),
        "On orthogonality and learning recurrent networks with long term dependencies",
        2017,
        _ICML.format("34th"),
        series=_PMLR,
        volume="70",
        pages="3570--3578",
        arxiv="1702.00071",
    ),
    Reference(
        "webb2021",
        "inproceedings",
        ("Webb, Taylor W.", "Sinha, Ishan", "Cohen, Jonathan D."),
        "Emergent Symbols through Binding in External Memory",
        2021,
        _ICLR,
        arxiv="2012.14601",
    ),
    Reference(
        "white2004",
        "article",
        ("White, Olivia L.", "Lee, Daniel D.", "Sompolinsky, Haim"),
        "Short-Term Memory in Orthogonal Neural Networks",
        2004,
        "Physical Review Letters",
        volume="92",
        number="14",
        doi="10.1103/PhysRevLett.92.148102",
    ),
    Reference(
        "wisdom2016",
        "inproceedings",
        ("Wisdom, Scott", "Powers, Thomas", "Hershey, John R.", "Le Roux, Jonathan", "Atlas, Les"),
        "Full-Capacity Unitary Recurrent Neural Networks",
        2016,
        _NEURIPS,
        volume="29",
        pages="4880--4888",
        arxiv="1611.00035",
    ),
    Reference(
        "wu2016",
        "inproceedings",
        ("Wu, Yuhuai", "Zhang, Saizheng", "Zhang, Ying", "Bengio, Yoshua", "Salakhutdinov, Ruslan"),
        "On Multiplicative Integration with Recurrent Neural Networks",
        2016,
        _NEURIPS,
        volume="29",
        pages="2856--2864",
        arxiv="1606.06630",
    ),
    Reference(
        "ziv2020",
        "misc",
        ("Ziv, Alon",),
        "Depth Enables Long-Term Memory for Recurrent Neural Networks",
        2020,
        "Master's thesis, The Hebrew University of Jerusalem, September 2019",
        arxiv="2003.10163",
    ),
)

REFERENCES: dict[str, Reference] = {entry.key: entry for entry in _ENTRIES}
"""Every reference by its key. A package with networks of its own adds its papers here."""
